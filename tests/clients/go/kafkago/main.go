// Creates a topic, produces with each codec and reads it back by partition, with segmentio/kafka-go.
// Arguments: bootstrap topic count codecs; a line a record: partition offset key value header.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/segmentio/kafka-go"
)

const partitions = 3

var codecs = map[string]kafka.Compression{
	"none": 0, "gzip": kafka.Gzip, "snappy": kafka.Snappy, "lz4": kafka.Lz4, "zstd": kafka.Zstd,
}

func main() {
	bootstrap, topic := os.Args[1], os.Args[2]
	count, err := strconv.Atoi(os.Args[3])
	check(err)
	ctx, cancel := context.WithTimeout(context.Background(), 40*time.Second)
	defer cancel()
	create(bootstrap, topic)
	names := strings.Split(os.Args[4], ",")
	for _, codec := range names {
		produce(ctx, bootstrap, topic, count, codec)
	}
	for index := 0; index < partitions; index++ {
		read(ctx, bootstrap, topic, index, count/partitions*len(names))
	}
}

func create(bootstrap, topic string) {
	connection, err := kafka.Dial("tcp", bootstrap)
	check(err)
	defer connection.Close()
	check(connection.CreateTopics(kafka.TopicConfig{Topic: topic, NumPartitions: partitions, ReplicationFactor: 1}))
}

func produce(ctx context.Context, bootstrap, topic string, count int, codec string) {
	byNumber := kafka.BalancerFunc(func(message kafka.Message, _ ...int) int {
		number, err := strconv.Atoi(strings.TrimPrefix(string(message.Key), "key-"))
		check(err)
		return number % partitions
	})
	writer := &kafka.Writer{Addr: kafka.TCP(bootstrap), Topic: topic, Balancer: byNumber, Compression: codecs[codec],
		RequiredAcks: kafka.RequireAll, BatchTimeout: 20 * time.Millisecond}
	messages := make([]kafka.Message, count)
	for n := range messages {
		messages[n] = kafka.Message{Key: []byte(fmt.Sprintf("key-%d", n)), Value: []byte(fmt.Sprintf("%s-%d", codec, n)),
			Headers: []kafka.Header{{Key: "codec", Value: []byte(codec)}}}
	}
	check(writer.WriteMessages(ctx, messages...))
	check(writer.Close())
}

func read(ctx context.Context, bootstrap, topic string, partition, count int) {
	reader := kafka.NewReader(kafka.ReaderConfig{Brokers: []string{bootstrap}, Topic: topic, Partition: partition,
		MaxWait: 200 * time.Millisecond})
	defer reader.Close()
	check(reader.SetOffset(0))
	for found := 0; found < count; found++ {
		message, err := reader.ReadMessage(ctx)
		check(err)
		fmt.Println(message.Partition, message.Offset, string(message.Key), string(message.Value),
			string(message.Headers[0].Value))
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
