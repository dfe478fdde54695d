// franz-go: the same jobs as the other peers. The harness also uses it to manage topics, because it starts quickly:
// `franz-go create|delete|rotate --bootstrap ... --topic ... --partitions N --replicas N`. `franz-go null` runs brokers.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"fmt"
	"os"
	"runtime/debug"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

var values = map[string]string{}

func number(name string) int {
	n, err := strconv.Atoi(values[name])
	check(err)
	return n
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	for i := 2; i+1 < len(os.Args); i += 2 {
		values[strings.TrimPrefix(os.Args[i], "--")] = os.Args[i+1]
	}
	switch os.Args[1] {
	case "produce":
		produce()
	case "latency":
		latency()
	case "consume":
		consume()
	case "steady":
		steady()
	case "tails":
		tails()
	case "rotate":
		rotate()
	case "create":
		create()
	case "delete":
		remove()
	case "null":
		null()
	default:
		check(fmt.Errorf("there is no job %s", os.Args[1]))
	}
}

func client(options ...kgo.Opt) *kgo.Client {
	options = append(options, kgo.SeedBrokers(strings.Split(values["bootstrap"], ",")...))
	if file, given := values["ca"]; given {
		pem, err := os.ReadFile(file)
		check(err)
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(pem)
		options = append(options, kgo.DialTLSConfig(&tls.Config{RootCAs: roots}))
	}
	c, err := kgo.NewClient(options...)
	check(err)
	return c
}

func producer(options ...kgo.Opt) *kgo.Client {
	codecs := map[string]kgo.CompressionCodec{
		"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
		"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
	}
	acks := kgo.AllISRAcks()
	if values["acks"] == "1" {
		acks = kgo.LeaderAck()
	}
	options = append(options,
		kgo.DefaultProduceTopic(values["topic"]),
		kgo.ProducerBatchCompression(codecs[values["codec"]]),
		kgo.RequiredAcks(acks),
		kgo.MaxBufferedRecords(100_000), // librdkafka's queue; ten times its own default
	)
	if numberOr("transaction", 0) > 0 {
		options = append(options, kgo.TransactionalID(fmt.Sprint("bench-", os.Getpid())))
	} else if numberOr("flush", 0) == 0 {
		// Without idempotence its default is one request at a time; the other clients have five or more.
		options = append(options, kgo.DisableIdempotentWrite(), kgo.MaxProduceRequestsInflightPerBroker(5))
	}
	if values["spread"] == "round-robin" {
		options = append(options, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	}
	return client(options...)
}

func payloads() func() []byte {
	bytes, err := os.ReadFile(values["payloads"])
	check(err)
	size, next := number("size"), 0
	return func() []byte {
		if next+size > len(bytes) {
			next = 0
		}
		next += size
		return bytes[next-size : next]
	}
}

func version() string {
	info, _ := debug.ReadBuildInfo()
	for _, module := range info.Deps {
		if module.Path == "github.com/twmb/franz-go" {
			return strings.TrimPrefix(module.Version, "v")
		}
	}
	return "unknown"
}

func report(began time.Time, messages, errors, bytes int64) {
	fmt.Printf("{\"version\":%q,\"messages\":%d,\"errors\":%d,\"bytes\":%d,\"seconds\":%.6f%s}\n",
		version(), messages, errors, bytes, time.Since(began).Seconds(), percentiles())
}

// The durations of commits or flushes.
var ends []time.Duration

func percentiles() string {
	if len(ends) == 0 {
		return ""
	}
	sort.Slice(ends, func(a, b int) bool { return ends[a] < ends[b] })
	at := func(share float64) float64 {
		return float64(ends[int(float64(len(ends)-1)*share)].Nanoseconds()) / 1000
	}
	return fmt.Sprintf(",\"p50_us\":%.1f,\"p99_us\":%.1f,\"p999_us\":%.1f", at(0.5), at(0.99), at(0.999))
}

// Ends a transaction, or flushes, and begins the next one.
func endPart(c *kgo.Client, number, messages int) {
	began, transactional := time.Now(), numberOr("transaction", 0) > 0
	if number > 0 {
		check(c.Flush(context.Background()))
		if transactional {
			check(c.EndTransaction(context.Background(), kgo.TryCommit))
		}
		ends = append(ends, time.Since(began))
	}
	if transactional && number < messages {
		check(c.BeginTransaction())
	}
}

func produce() {
	c := producer()
	next, messages, partitions := payloads(), number("messages"), number("partitions")
	var delivered, errors atomic.Int64
	done := func(_ *kgo.Record, err error) {
		delivered.Add(1)
		if err != nil {
			errors.Add(1)
		}
	}
	// Records come from a pool and go back to it on delivery, as its documentation advises.
	pool := sync.Pool{New: func() any { return new(kgo.Record) }}
	recycle := func(record *kgo.Record, err error) {
		done(record, err)
		*record = kgo.Record{}
		pool.Put(record)
	}
	ctx, began := context.Background(), time.Now()
	part := max(numberOr("transaction", 0), numberOr("flush", 0))
	for i := 0; i < messages; i++ {
		if part > 0 && i%part == 0 {
			endPart(c, i, messages)
		}
		record := pool.Get().(*kgo.Record)
		record.Value = next()
		record.Partition = int32(i % partitions)
		c.Produce(ctx, record, recycle)
	}
	if part > 0 {
		endPart(c, messages, messages)
	}
	check(c.Flush(ctx))
	report(began, delivered.Load(), errors.Load(), 0)
}

func latency() {
	c := producer(kgo.ProducerLinger(0))
	next, messages := payloads(), number("messages")
	var times []time.Duration
	for i := 0; i < messages+messages/10; i++ {
		began := time.Now()
		check(c.ProduceSync(context.Background(), &kgo.Record{Value: next()}).FirstErr())
		if i >= messages/10 {
			times = append(times, time.Since(began))
		}
	}
	sort.Slice(times, func(a, b int) bool { return times[a] < times[b] })
	at := func(share float64) float64 {
		return float64(times[int(float64(len(times)-1)*share)].Nanoseconds()) / 1000
	}
	fmt.Printf("{\"version\":%q,\"messages\":%d,\"errors\":0,\"p50_us\":%.1f,\"p99_us\":%.1f,\"p999_us\":%.1f}\n",
		version(), len(times), at(0.5), at(0.99), at(0.999))
}

func consume() {
	partitions := map[int32]kgo.Offset{}
	for partition := 0; partition < number("partitions"); partition++ {
		partitions[int32(partition)] = kgo.NewOffset().AtStart()
	}
	options := []kgo.Opt{kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{values["topic"]: partitions})}
	if values["mode"] == "member" {
		options = []kgo.Opt{
			// The members of earlier runs are still in their groups.
			kgo.ConsumerGroup(fmt.Sprint("bench-", os.Getpid())), kgo.ConsumeTopics(values["topic"]), kgo.DisableAutoCommit(),
			kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		}
	}
	if values["isolation"] == "read_committed" {
		options = append(options, kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	}
	c := client(options...)
	var received, bytes, sum int64
	began, messages := time.Now(), int64(number("messages"))
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for received < messages && ctx.Err() == nil {
		fetches := c.PollFetches(ctx)
		fetches.EachError(func(_ string, _ int32, err error) { fmt.Fprintln(os.Stderr, err) })
		fetches.EachRecord(func(record *kgo.Record) {
			received++
			bytes += int64(len(record.Value))
			if len(record.Value) > 0 {
				sum += int64(record.Value[0])
			}
		})
	}
	report(began, received, 0, bytes)
}

func create() {
	request := kmsg.NewPtrCreateTopicsRequest()
	request.TimeoutMillis = 30_000
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions = values["topic"], int32(number("partitions"))
	topic.ReplicationFactor = int16(number("replicas"))
	request.Topics = append(request.Topics, topic)
	response, err := request.RequestWith(context.Background(), client())
	check(err)
	for _, topic := range response.Topics {
		check(kerr.ErrorForCode(topic.ErrorCode))
	}
	// Waits until every partition has a leader, so that clients don't measure this.
	for began := time.Now(); time.Since(began) < 30*time.Second; time.Sleep(20 * time.Millisecond) {
		if ready() {
			return
		}
	}
	check(fmt.Errorf("topic %s has no leaders", values["topic"]))
}

func ready() bool {
	request := kmsg.NewPtrMetadataRequest()
	topic := kmsg.NewMetadataRequestTopic()
	topic.Topic = kmsg.StringPtr(values["topic"])
	request.Topics = append(request.Topics, topic)
	response, err := request.RequestWith(context.Background(), client())
	if err != nil || len(response.Topics) != 1 || len(response.Topics[0].Partitions) != number("partitions") {
		return false
	}
	for _, partition := range response.Topics[0].Partitions {
		if partition.ErrorCode != 0 || partition.Leader < 0 {
			return false
		}
	}
	return true
}

func remove() {
	request := kmsg.NewPtrDeleteTopicsRequest()
	request.TimeoutMillis = 30_000
	request.TopicNames = []string{values["topic"]}
	topic := kmsg.NewDeleteTopicsRequestTopic()
	topic.Topic = kmsg.StringPtr(values["topic"])
	request.Topics = append(request.Topics, topic)
	_, err := request.RequestWith(context.Background(), client())
	check(err)
}

// The given number of records per second, each timed from Produce to its promise.
// Counts ProduceRequests.
type requests struct{ produce atomic.Int64 }

func (r *requests) OnBrokerWrite(_ kgo.BrokerMetadata, key int16, _ int, _, _ time.Duration, _ error) {
	if key == 0 {
		r.produce.Add(1)
	}
}

// An optional number.
func numberOr(name string, otherwise int) int {
	if _, there := values[name]; there {
		return number(name)
	}
	return otherwise
}

// The time from Produce to the record's return by PollFetches, at a fixed rate: bench/tails.sh.
func tails() {
	topic, partitions, rate := values["topic"], number("partitions"), number("rate")
	warm := number("warm") * rate
	total := warm + number("seconds")*rate
	all := map[int32]kgo.Offset{}
	for p := 0; p < partitions; p++ {
		all[int32(p)] = kgo.NewOffset().AtStart()
	}
	consumer := client(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: all}))
	producer := client(kgo.ProducerLinger(0), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.MaxBufferedRecords(100_000))
	ctx := context.Background()
	time.Sleep(2 * time.Second)
	origin := time.Now()
	go func() {
		began := time.Now()
		for i := 0; i < total; i++ {
			if wait := time.Duration(i)*time.Second/time.Duration(rate) - time.Since(began); wait > 0 {
				time.Sleep(wait)
			}
			value := make([]byte, 100)
			binary.BigEndian.PutUint64(value, uint64(time.Since(origin)))
			producer.Produce(ctx, &kgo.Record{Topic: topic, Partition: int32(i % partitions), Value: value},
				func(_ *kgo.Record, err error) { check(err) })
		}
	}()
	times, received := make([]float64, 0, total-warm), 0
	for received < total {
		fetches := consumer.PollFetches(ctx)
		fetches.EachError(func(_ string, _ int32, err error) { check(err) })
		fetches.EachRecord(func(record *kgo.Record) {
			sent := time.Duration(binary.BigEndian.Uint64(record.Value))
			if received >= warm {
				times = append(times, float64(time.Since(origin)-sent)/1000)
			}
			received++
		})
	}
	var usage syscall.Rusage
	check(syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	sort.Float64s(times)
	at := func(part float64) float64 { return times[int(float64(len(times)-1)*part)] }
	fmt.Printf("%.0f %.0f %.0f %.0f %.0f\n", at(0.5), at(0.99), at(0.999), at(1),
		float64(usage.Utime.Nano()+usage.Stime.Nano())/float64(total))
}

func steady() {
	var sent requests
	acks := kgo.AllISRAcks()
	if values["acks"] == "1" {
		acks = kgo.LeaderAck()
	}
	c := client(
		kgo.DefaultProduceTopic(values["topic"]),
		kgo.ProducerBatchCompression(kgo.NoCompression()),
		kgo.RequiredAcks(acks),
		kgo.ProducerLinger(time.Duration(numberOr("linger", 0))*time.Millisecond),
		kgo.WithHooks(&sent),
		kgo.ProducerBatchMaxBytes(int32(number("batch"))),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.MaxBufferedRecords(100_000),
	)
	next, rate, partitions := payloads(), number("rate"), number("partitions")
	warm := number("warm") * rate
	tick, random := time.Duration(numberOr("tick", 0))*time.Millisecond, values["spread"] == "random"
	messages := warm + number("seconds")*rate
	var lock sync.Mutex
	var times []time.Duration
	errors := 0
	ctx, began := context.Background(), time.Now()
	for i := 0; i < messages; i++ {
		if wait := time.Duration(i)*time.Second/time.Duration(rate) - time.Since(began); wait > 0 {
			time.Sleep(max(wait, tick))
		}
		partition := i % partitions
		if random {
			partition = int((uint64(i) * 0x9e3779b97f4a7c15 >> 33) % uint64(partitions))
		}
		i, sent := i, time.Now()
		c.Produce(ctx, &kgo.Record{Value: next(), Partition: int32(partition)}, func(_ *kgo.Record, err error) {
			took := time.Since(sent)
			lock.Lock()
			defer lock.Unlock()
			if err != nil {
				errors++
			}
			if i >= warm {
				times = append(times, took)
			}
		})
	}
	check(c.Flush(ctx))
	sort.Slice(times, func(a, b int) bool { return times[a] < times[b] })
	at := func(share float64) float64 {
		return float64(times[int(float64(len(times)-1)*share)].Nanoseconds()) / 1000
	}
	fmt.Printf("{\"version\":%q,\"messages\":%d,\"errors\":%d,\"p50_us\":%.1f,\"p99_us\":%.1f,\"p999_us\":%.1f,\"max_us\":%.1f,\"requests\":%d,\"longest_wait_us\":-1}\n",
		version(), len(times), errors, at(0.5), at(0.99), at(0.999), at(1), sent.produce.Load())
}

// Moves every partition's leadership to the next of its replicas: their order is rotated, then the first is elected.
func rotate() {
	c := client()
	topic := values["topic"]
	ask := kmsg.NewPtrMetadataRequest()
	wanted := kmsg.NewMetadataRequestTopic()
	wanted.Topic = kmsg.StringPtr(topic)
	ask.Topics = append(ask.Topics, wanted)
	metadata, err := ask.RequestWith(context.Background(), c)
	check(err)
	assign := kmsg.NewPtrAlterPartitionAssignmentsRequest()
	assign.TimeoutMillis = 30_000
	elect := kmsg.NewPtrElectLeadersRequest()
	elect.TimeoutMillis = 30_000
	assigned, elected := kmsg.NewAlterPartitionAssignmentsRequestTopic(), kmsg.NewElectLeadersRequestTopic()
	assigned.Topic, elected.Topic = topic, topic
	for _, partition := range metadata.Topics[0].Partitions {
		one := kmsg.NewAlterPartitionAssignmentsRequestTopicPartition()
		one.Partition = partition.Partition
		one.Replicas = append(append(one.Replicas, partition.Replicas[1:]...), partition.Replicas[0])
		assigned.Partitions = append(assigned.Partitions, one)
		elected.Partitions = append(elected.Partitions, partition.Partition)
	}
	assign.Topics, elect.Topics = append(assign.Topics, assigned), append(elect.Topics, elected)
	reordered, err := assign.RequestWith(context.Background(), c)
	check(err)
	check(kerr.ErrorForCode(reordered.ErrorCode))
	for _, partition := range reordered.Topics[0].Partitions {
		check(kerr.ErrorForCode(partition.ErrorCode))
	}
	answer, err := elect.RequestWith(context.Background(), c)
	check(err)
	check(kerr.ErrorForCode(answer.ErrorCode))
	for _, partition := range answer.Topics[0].Partitions {
		check(kerr.ErrorForCode(partition.ErrorCode))
	}
}
