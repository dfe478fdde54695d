package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"

	"github.com/twmb/franz-go/pkg/kbin"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// The newest version of each request that a null broker answers. Produce requests with topic IDs are left out.
var nullVersions = map[int16]int16{
	kmsg.Produce.Int16(): 12, kmsg.Metadata.Int16(): 12, kmsg.ApiVersions.Int16(): 4, kmsg.CreateTopics.Int16(): 7,
	kmsg.DeleteTopics.Int16(): 5, kmsg.InitProducerID.Int16(): 4,
}

// nullCluster is a cluster of brokers that acknowledge records and forget them. It shares no code with Ottla's brokers.
type nullCluster struct {
	addresses []*net.TCPAddr
	lock      sync.Mutex
	// topics has the next offset of each partition.
	topics map[string][]int64
}

// null runs three brokers until standard input ends, and prints their addresses.
func null() {
	cluster := &nullCluster{topics: map[string][]int64{}}
	var names []string
	var listeners []net.Listener
	for range 3 {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		check(err)
		listeners = append(listeners, listener)
		cluster.addresses = append(cluster.addresses, listener.Addr().(*net.TCPAddr))
		names = append(names, listener.Addr().String())
	}
	for _, listener := range listeners {
		go func() {
			for {
				connection, err := listener.Accept()
				check(err)
				go cluster.serve(connection)
			}
		}()
	}
	fmt.Println(strings.Join(names, ","))
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// serve answers the requests of a connection, one after the other, until it ends.
func (c *nullCluster) serve(connection net.Conn) {
	defer connection.Close()
	reader := bufio.NewReaderSize(connection, 64<<10)
	var request, response []byte
	for {
		var size [4]byte
		if _, err := io.ReadFull(reader, size[:]); err != nil {
			return
		}
		length := int(binary.BigEndian.Uint32(size[:]))
		if length < 8 || length > 100<<20 {
			return
		}
		if cap(request) < length {
			request = make([]byte, length)
		}
		request = request[:length]
		if _, err := io.ReadFull(reader, request); err != nil {
			return
		}
		var err error
		if response, err = c.answer(request, response[:0]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return
		}
		if len(response) > 0 {
			if _, err = connection.Write(response); err != nil {
				return
			}
		}
	}
}

// answer appends the response to a request, behind its size; nothing if the client expects none.
func (c *nullCluster) answer(request, out []byte) ([]byte, error) {
	reader := kbin.Reader{Src: request}
	key, version, correlation := reader.Int16(), reader.Int16(), reader.Int32()
	reader.NullableString() // the client's ID
	newest, known := nullVersions[key]
	if !known {
		return nil, fmt.Errorf("the null broker does not answer requests of key %d", key)
	}
	tooNew := version > newest
	if tooNew && key != kmsg.ApiVersions.Int16() {
		return nil, fmt.Errorf("version %d of key %d is too new", version, key)
	}
	if tooNew {
		version = 0
	}
	parsed := kmsg.RequestForKey(key)
	parsed.SetVersion(version)
	if !tooNew {
		if parsed.IsFlexible() {
			kmsg.SkipTags(&reader)
		}
		if err := parsed.ReadFrom(reader.Src); err != nil {
			return nil, err
		}
	}
	var answer kmsg.Response
	switch parsed := parsed.(type) {
	case *kmsg.ProduceRequest:
		if parsed.Acks == 0 {
			return out, nil
		}
		answer = c.produced(parsed)
	case *kmsg.MetadataRequest:
		answer = c.metadata(parsed)
	case *kmsg.CreateTopicsRequest:
		answer = c.create(parsed)
	case *kmsg.DeleteTopicsRequest:
		answer = c.remove(parsed)
	case *kmsg.InitProducerIDRequest:
		identity := parsed.ResponseKind().(*kmsg.InitProducerIDResponse)
		identity.ProducerID, identity.ProducerEpoch = 1, 0
		answer = identity
	case *kmsg.ApiVersionsRequest:
		answer = versions(parsed, tooNew)
	}
	out = append(out, 0, 0, 0, 0)
	out = binary.BigEndian.AppendUint32(out, uint32(correlation))
	if answer.IsFlexible() && key != kmsg.ApiVersions.Int16() {
		out = append(out, 0) // no tagged fields
	}
	out = answer.AppendTo(out)
	binary.BigEndian.PutUint32(out, uint32(len(out)-4))
	return out, nil
}

func (c *nullCluster) produced(request *kmsg.ProduceRequest) kmsg.Response {
	response := request.ResponseKind().(*kmsg.ProduceResponse)
	c.lock.Lock()
	defer c.lock.Unlock()
	for _, topic := range request.Topics {
		done := kmsg.NewProduceResponseTopic()
		done.Topic = topic.Topic
		next := c.topics[topic.Topic]
		for _, partition := range topic.Partitions {
			acknowledged := kmsg.NewProduceResponseTopicPartition()
			acknowledged.Partition, acknowledged.LogStartOffset = partition.Partition, 0
			if number := int(partition.Partition); number >= len(next) || len(partition.Records) < lastOffsetDelta+4 {
				acknowledged.ErrorCode = 3 // UNKNOWN_TOPIC_OR_PARTITION
			} else {
				acknowledged.BaseOffset = next[number]
				next[number] += int64(binary.BigEndian.Uint32(partition.Records[lastOffsetDelta:])) + 1
			}
			done.Partitions = append(done.Partitions, acknowledged)
		}
		response.Topics = append(response.Topics, done)
	}
	return response
}

// lastOffsetDelta is where a record batch says how many records it has.
const lastOffsetDelta = 23

// metadata names the leader of every partition: the brokers in turn.
func (c *nullCluster) metadata(request *kmsg.MetadataRequest) kmsg.Response {
	response := request.ResponseKind().(*kmsg.MetadataResponse)
	for id, address := range c.addresses {
		broker := kmsg.NewMetadataResponseBroker()
		broker.NodeID, broker.Host, broker.Port = int32(id), "127.0.0.1", int32(address.Port)
		response.Brokers = append(response.Brokers, broker)
	}
	response.ClusterID, response.ControllerID = kmsg.StringPtr("null"), 0
	c.lock.Lock()
	defer c.lock.Unlock()
	names := make([]string, 0, len(request.Topics))
	for _, topic := range request.Topics {
		if topic.Topic != nil {
			names = append(names, *topic.Topic)
		}
	}
	if request.Topics == nil {
		for name := range c.topics {
			names = append(names, name)
		}
	}
	for _, name := range names {
		topic := kmsg.NewMetadataResponseTopic()
		topic.Topic = kmsg.StringPtr(name)
		offsets, known := c.topics[name]
		if !known {
			topic.ErrorCode = 3 // UNKNOWN_TOPIC_OR_PARTITION
		}
		for number := range int32(len(offsets)) {
			partition := kmsg.NewMetadataResponseTopicPartition()
			leader := number % int32(len(c.addresses))
			partition.Partition, partition.Leader, partition.LeaderEpoch = number, leader, 0
			partition.Replicas, partition.ISR = []int32{leader}, []int32{leader}
			topic.Partitions = append(topic.Partitions, partition)
		}
		response.Topics = append(response.Topics, topic)
	}
	return response
}

func (c *nullCluster) create(request *kmsg.CreateTopicsRequest) kmsg.Response {
	response := request.ResponseKind().(*kmsg.CreateTopicsResponse)
	c.lock.Lock()
	defer c.lock.Unlock()
	for _, topic := range request.Topics {
		c.topics[topic.Topic] = make([]int64, max(topic.NumPartitions, 1))
		created := kmsg.NewCreateTopicsResponseTopic()
		created.Topic = topic.Topic
		response.Topics = append(response.Topics, created)
	}
	return response
}

func (c *nullCluster) remove(request *kmsg.DeleteTopicsRequest) kmsg.Response {
	response := request.ResponseKind().(*kmsg.DeleteTopicsResponse)
	c.lock.Lock()
	defer c.lock.Unlock()
	for _, name := range request.TopicNames {
		delete(c.topics, name)
		removed := kmsg.NewDeleteTopicsResponseTopic()
		removed.Topic = kmsg.StringPtr(name)
		response.Topics = append(response.Topics, removed)
	}
	return response
}

func versions(request *kmsg.ApiVersionsRequest, tooNew bool) kmsg.Response {
	response := request.ResponseKind().(*kmsg.ApiVersionsResponse)
	if tooNew {
		response.ErrorCode = 35 // UNSUPPORTED_VERSION
	}
	for key, newest := range nullVersions {
		supported := kmsg.NewApiVersionsResponseApiKey()
		supported.ApiKey, supported.MinVersion, supported.MaxVersion = key, 0, newest
		if key == kmsg.Produce.Int16() {
			supported.MinVersion = 3
		}
		response.ApiKeys = append(response.ApiKeys, supported)
	}
	return response
}
