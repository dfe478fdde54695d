// A test with a broker of its own: `ottla` is on the PATH. Run by `go test`.
package orders

import (
	"bufio"
	"context"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// broker starts a broker on a free port, ends it with the test, and returns its address.
func broker(t *testing.T, options ...string) string {
	command := exec.Command("ottla", append([]string{"broker", "--port", "0"}, options...)...)
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Signal(syscall.SIGTERM)
		_ = command.Wait()
	})
	for lines := bufio.NewScanner(output); lines.Scan(); {
		if servers, found := strings.CutPrefix(lines.Text(), "bootstrap.servers="); found {
			return servers
		}
	}
	t.Fatal("the broker ended")
	return ""
}

func TestOrdersComeBackInTheirOrder(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	client, err := kgo.NewClient(
		kgo.SeedBrokers(strings.Split(broker(t), ",")...),
		kgo.AllowAutoTopicCreation(),
		kgo.ConsumeTopics("orders"),
	)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	sent := []string{"order 0", "order 1", "order 2"}
	for _, order := range sent {
		record := &kgo.Record{Topic: "orders", Key: []byte("customer-1"), Value: []byte(order)}
		if err := client.ProduceSync(ctx, record).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	var seen []string
	for len(seen) < len(sent) && ctx.Err() == nil {
		client.PollFetches(ctx).EachRecord(func(record *kgo.Record) { seen = append(seen, string(record.Value)) })
	}
	if strings.Join(seen, ",") != strings.Join(sent, ",") {
		t.Fatalf("%v came back", seen)
	}
}
