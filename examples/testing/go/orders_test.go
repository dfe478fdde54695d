// A test with a broker of its own: `ottla` is on the PATH. Run by `go test`.
package orders

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"orders/ottlabroker"
)

func TestOrdersComeBackInTheirOrder(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	client, err := kgo.NewClient(
		kgo.SeedBrokers(strings.Split(ottlabroker.Start(t).BootstrapServers, ",")...),
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
