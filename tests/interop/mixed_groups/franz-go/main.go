// A member of a group, by franz-go: SERVERS GROUP TOPIC PROTOCOL. What it prints is described in ../driver.py.
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/signal"
	"sort"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

var (
	lock sync.Mutex
	held = map[int32]bool{}
	out  = bufio.NewWriter(os.Stdout)
)

func say(words ...any) {
	lock.Lock()
	defer lock.Unlock()
	write(words...)
}

func write(words ...any) {
	fmt.Fprintln(out, append([]any{time.Now().UnixMilli()}, words...)...)
	out.Flush()
}

// change adds or removes partitions, and prints those that are held then.
func change(isAssign bool) func(context.Context, *kgo.Client, map[string][]int32) {
	return func(_ context.Context, _ *kgo.Client, topics map[string][]int32) {
		lock.Lock()
		defer lock.Unlock()
		for _, partitions := range topics {
			for _, partition := range partitions {
				if isAssign {
					held[partition] = true
				} else {
					delete(held, partition)
				}
			}
		}
		var numbers []int
		for partition := range held {
			numbers = append(numbers, int(partition))
		}
		sort.Ints(numbers)
		text := "-"
		if len(numbers) > 0 {
			text = strings.ReplaceAll(strings.Trim(fmt.Sprint(numbers), "[]"), " ", ",")
		}
		write("held", text)
	}
}

func main() {
	servers, group, topic, protocol := os.Args[1], os.Args[2], os.Args[3], os.Args[4]
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	options := []kgo.Opt{
		kgo.SeedBrokers(strings.Split(servers, ",")...), kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableAutoCommit(), kgo.BlockRebalanceOnPoll(),
		kgo.OnPartitionsAssigned(change(true)), kgo.OnPartitionsRevoked(change(false)),
		kgo.OnPartitionsLost(change(false)),
		kgo.SessionTimeout(6 * time.Second), kgo.HeartbeatInterval(500 * time.Millisecond),
	}
	switch protocol {
	case "range":
		options = append(options, kgo.Balancers(kgo.RangeBalancer()))
	case "cooperative-sticky":
		options = append(options, kgo.Balancers(kgo.CooperativeStickyBalancer()))
	case "consumer":
		// Its name for the consumer protocol while that is a beta.
		options = append(options, kgo.WithContext(
			context.WithValue(context.Background(), "opt_in_kafka_next_gen_balancer_beta", true)))
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		panic(err)
	}
	for ctx.Err() == nil {
		fetches := client.PollRecords(ctx, 50)
		fetches.EachError(func(_ string, _ int32, err error) {
			if ctx.Err() == nil {
				say("error", err)
			}
		})
		next := map[int32]int64{}
		var records []*kgo.Record
		fetches.EachRecord(func(record *kgo.Record) {
			say("got", record.Partition, record.Offset)
			next[record.Partition] = record.Offset + 1
			records = append(records, record)
		})
		if len(records) > 0 {
			if err := client.CommitRecords(context.Background(), records...); err != nil {
				say("error", err)
			} else {
				for partition, offset := range next {
					say("commit", partition, offset)
				}
			}
		}
		client.AllowRebalance()
	}
	client.CloseAllowingRebalance()
}
