// A member of a share group, by franz-go: SERVERS GROUP TOPIC. It prints the value of each record before it
// accepts it, and again once the acceptance is confirmed, until the end of its input.
package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

func main() {
	client, err := kgo.NewClient(kgo.SeedBrokers(strings.Split(os.Args[1], ",")...), kgo.ShareGroup(os.Args[2]),
		kgo.ConsumeTopics(os.Args[3]), kgo.ShareMaxRecords(20))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	defer client.Close()
	ended := make(chan struct{})
	go func() {
		io.Copy(io.Discard, os.Stdin)
		close(ended)
	}()
	out := bufio.NewWriter(os.Stdout)
	for {
		select {
		case <-ended:
			return
		default:
		}
		wait, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
		records := client.PollFetches(wait).Records()
		cancel()
		for _, record := range records {
			fmt.Fprintln(out, "unsure", string(record.Value))
			record.Ack(kgo.AckAccept)
		}
		out.Flush()
		if err := client.FlushAcks(context.Background()); err != nil {
			continue
		}
		for _, record := range records {
			fmt.Fprintln(out, "accepted", string(record.Value))
		}
		out.Flush()
	}
}
