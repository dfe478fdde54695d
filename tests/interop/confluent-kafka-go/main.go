// confluent-kafka-go on our C library: BROKERS TOPIC.
//
// Two members of a group share a topic: a consumer with a callback that assigns by itself, and one that reads with
// ReadMessage. Every record is delivered once, commits are kept, and a closed member's partitions go to the other. Then
// transactions are committed, aborted and fenced.
package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/confluentinc/confluent-kafka-go/v2/kafka"
)

const (
	partitions = 4
	round      = 100
	timeout    = 60 * time.Second
)

func check(err error) {
	if err != nil {
		panic(err)
	}
}

type member struct {
	consumer *kafka.Consumer
	held     map[int32]bool
	commits  int
}

// records maps the partition and offset of each record to true once a member got it.
type records map[[2]int64]bool

func (seen records) add(message *kafka.Message) {
	partition, offset := message.TopicPartition.Partition, int64(message.TopicPartition.Offset)
	if expected := fmt.Sprintf("%d of %d", offset, partition); string(message.Value) != expected {
		panic(fmt.Sprintf("%s is not %s", message.Value, expected))
	}
	key := [2]int64{int64(partition), offset}
	if seen[key] {
		panic(fmt.Sprintf("%v came twice", message))
	}
	seen[key] = true
}

func newMember(config kafka.ConfigMap, topic string) *member {
	copied := kafka.ConfigMap{}
	for name, value := range config {
		copied[name] = value
	}
	consumer, err := kafka.NewConsumer(&copied)
	check(err)
	created := &member{consumer: consumer, held: map[int32]bool{}}
	check(consumer.SubscribeTopics([]string{topic}, created.rebalanced))
	return created
}

func (m *member) rebalanced(consumer *kafka.Consumer, event kafka.Event) error {
	isCooperative := consumer.GetRebalanceProtocol() == "COOPERATIVE"
	switch change := event.(type) {
	case kafka.AssignedPartitions:
		for _, partition := range change.Partitions {
			m.held[partition.Partition] = true
		}
		if isCooperative {
			return consumer.IncrementalAssign(change.Partitions)
		}
		return consumer.Assign(change.Partitions)
	case kafka.RevokedPartitions:
		if consumer.AssignmentLost() {
			panic("the assignment is lost")
		}
		for _, partition := range change.Partitions {
			delete(m.held, partition.Partition)
		}
		if isCooperative {
			return consumer.IncrementalUnassign(change.Partitions)
		}
		return consumer.Unassign()
	}
	panic(event)
}

// poll handles the events of a short time.
func (m *member) poll(seen records) {
	switch event := m.consumer.Poll(20).(type) {
	case *kafka.Message:
		check(event.TopicPartition.Error)
		seen.add(event)
	case kafka.OffsetsCommitted:
		check(event.Error)
		m.commits++
	case kafka.Error:
		panic(event)
	}
}

// read reads one message, if there is one.
func (m *member) read(seen records) {
	message, err := m.consumer.ReadMessage(20 * time.Millisecond)
	if failure, ok := err.(kafka.Error); ok && failure.IsTimeout() {
		return
	}
	check(err)
	seen.add(message)
	_, err = m.consumer.CommitMessage(message)
	check(err)
}

func produce(producer *kafka.Producer, topic string, first int) {
	for offset := first; offset < first+round; offset++ {
		for partition := int32(0); partition < partitions; partition++ {
			to := kafka.TopicPartition{Topic: &topic, Partition: partition}
			value := fmt.Sprintf("%d of %d", offset, partition)
			check(producer.Produce(&kafka.Message{TopicPartition: to, Value: []byte(value)}, nil))
		}
	}
	for delivered := 0; delivered < partitions*round; {
		select {
		case event := <-producer.Events():
			if report, ok := event.(*kafka.Message); ok {
				check(report.TopicPartition.Error)
				delivered++
			}
		case <-time.After(timeout):
			panic("records are not delivered")
		}
	}
}

func twoMembers(config kafka.ConfigMap, topic string, producer *kafka.Producer) {
	until := time.Now().Add(timeout)
	inTime := func(what string, members ...*member) {
		if time.Now().After(until) {
			for _, m := range members {
				what += fmt.Sprint(" ", m.held)
			}
			panic(what)
		}
	}
	produce(producer, topic, 0)
	seen := records{}
	first := newMember(config, topic)
	for len(seen) < partitions*round {
		inTime("the first records", first)
		first.poll(seen)
	}
	_, err := first.consumer.Commit()
	check(err)

	second := newMember(config, topic)
	isProduced := false
	for len(seen) < 2*partitions*round {
		inTime("the records of two members", first, second)
		first.poll(seen)
		second.read(seen)
		if !isProduced && len(first.held) == partitions/2 && len(second.held) == partitions/2 {
			isProduced = true
			produce(producer, topic, round)
		}
	}
	_, err = first.consumer.Commit()
	check(err)
	check(first.consumer.Close())
	for len(second.held) < partitions {
		inTime("the partitions of the closed member", second)
		second.read(seen)
	}
	asked := make([]kafka.TopicPartition, partitions)
	for partition := range asked {
		asked[partition] = kafka.TopicPartition{Topic: &topic, Partition: int32(partition)}
	}
	committed, err := second.consumer.Committed(asked, int(timeout.Milliseconds()))
	check(err)
	for _, partition := range committed {
		if partition.Offset != 2*round {
			panic(partition)
		}
	}
	check(second.consumer.Close())
}

func transactional(brokers, id string) *kafka.Producer {
	producer, err := kafka.NewProducer(&kafka.ConfigMap{"bootstrap.servers": brokers, "transactional.id": id})
	check(err)
	go func() {
		for range producer.Events() {
		}
	}()
	check(producer.InitTransactions(nil))
	return producer
}

func send(producer *kafka.Producer, topic, value string) {
	check(producer.BeginTransaction())
	to := kafka.TopicPartition{Topic: &topic, Partition: 0}
	check(producer.Produce(&kafka.Message{TopicPartition: to, Value: []byte(value)}, nil))
}

// transactions are committed with the offsets of a group, aborted, and fenced by a newer producer.
func transactions(brokers, topic string) {
	consumer, err := kafka.NewConsumer(&kafka.ConfigMap{"bootstrap.servers": brokers, "group.id": topic + "-transactions"})
	check(err)
	older := transactional(brokers, topic)
	send(older, topic, "committed")
	group, err := consumer.GetConsumerGroupMetadata()
	check(err)
	asked := []kafka.TopicPartition{{Topic: &topic, Partition: 0, Offset: 7}}
	check(older.SendOffsetsToTransaction(nil, asked, group))
	check(older.CommitTransaction(nil))
	send(older, topic, "aborted")
	check(older.AbortTransaction(nil))
	newer := transactional(brokers, topic)
	send(older, topic, "late")
	err = older.CommitTransaction(nil)
	if failure, ok := err.(kafka.Error); ok && failure.TxnRequiresAbort() {
		// The partition's leader does not know whether a timeout or a newer producer has raised the epoch.
		err = older.AbortTransaction(nil)
	}
	if failure, ok := err.(kafka.Error); !ok || !failure.IsFatal() || failure.Code() != kafka.ErrFenced {
		panic(fmt.Sprint("two producers have one transactional.id: ", err))
	}
	send(newer, topic, "of the newer")
	check(newer.CommitTransaction(nil))
	check(consumer.Assign([]kafka.TopicPartition{{Topic: &topic, Partition: 0, Offset: kafka.OffsetBeginning}}))
	for _, expected := range []string{"committed", "of the newer"} {
		message, err := consumer.ReadMessage(timeout)
		check(err)
		if string(message.Value) != expected {
			panic(message)
		}
	}
	committed, err := consumer.Committed(asked, int(timeout.Milliseconds()))
	check(err)
	if committed[0].Offset != 7 {
		panic(committed)
	}
	check(consumer.Close())
	older.Close()
	newer.Close()
	fmt.Println("confluent-kafka-go: transactions")
}

func main() {
	brokers, topic := os.Args[1], os.Args[2]
	number, text := kafka.LibraryVersion()
	if number != 0x021000ff || !strings.HasPrefix(text, "2.16.0-ottla") {
		panic(text)
	}
	producer, err := kafka.NewProducer(&kafka.ConfigMap{"bootstrap.servers": brokers, "enable.idempotence": true})
	check(err)
	for name, settings := range map[string]kafka.ConfigMap{
		"range":              {"partition.assignment.strategy": "range", "heartbeat.interval.ms": 300},
		"cooperative-sticky": {"partition.assignment.strategy": "cooperative-sticky", "heartbeat.interval.ms": 300},
		"consumer":           {"group.protocol": "consumer"},
	} {
		config := kafka.ConfigMap{
			"bootstrap.servers":  brokers,
			"group.id":           topic + "-" + name,
			"auto.offset.reset":  "earliest",
			"enable.auto.commit": false,
		}
		for property, value := range settings {
			config[property] = value
		}
		twoMembers(config, topic+"-"+name, producer)
		fmt.Println("confluent-kafka-go: two members share a topic:", name)
	}
	producer.Close()
	transactions(brokers, topic+"-transactions")
}
