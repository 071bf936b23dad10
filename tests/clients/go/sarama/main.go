// Creates a topic, produces with each codec and reads it back by partition, with IBM/sarama.
// Arguments: bootstrap topic count codecs [version]; a line a record: partition offset key value header.
package main

import (
	"fmt"
	"log"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/IBM/sarama"
)

const partitions = 3

var codecs = map[string]sarama.CompressionCodec{
	"none": sarama.CompressionNone, "gzip": sarama.CompressionGZIP, "snappy": sarama.CompressionSnappy,
	"lz4": sarama.CompressionLZ4, "zstd": sarama.CompressionZSTD,
}

func main() {
	brokers, topic := []string{os.Args[1]}, os.Args[2]
	count, err := strconv.Atoi(os.Args[3])
	check(err)
	names := strings.Split(os.Args[4], ",")
	config := sarama.NewConfig()
	config.Producer.Return.Successes = true
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Producer.Partitioner = sarama.NewManualPartitioner
	config.Consumer.MaxWaitTime = 200 * time.Millisecond
	config.Version = sarama.V3_6_0_0
	if len(os.Args) > 5 {
		config.Version, err = sarama.ParseKafkaVersion(os.Args[5])
		check(err)
	}
	admin, err := sarama.NewClusterAdmin(brokers, config)
	check(err)
	check(admin.CreateTopic(topic, &sarama.TopicDetail{NumPartitions: partitions, ReplicationFactor: 1}, false))
	check(admin.Close())
	for _, codec := range names {
		config.Producer.Compression = codecs[codec]
		produce(brokers, config, topic, count, codec)
	}
	consumer, err := sarama.NewConsumer(brokers, config)
	check(err)
	for index := int32(0); index < partitions; index++ {
		read(consumer, topic, index, count/partitions*len(names))
	}
	check(consumer.Close())
}

func produce(brokers []string, config *sarama.Config, topic string, count int, codec string) {
	client, err := sarama.NewClient(brokers, config)
	check(err)
	// A producer that begins while its broker is being connected to may have a request refused and the next one sent.
	leader, err := client.Leader(topic, 0)
	check(err)
	_, err = leader.Connected()
	check(err)
	producer, err := sarama.NewSyncProducerFromClient(client)
	check(err)
	messages := make([]*sarama.ProducerMessage, count)
	for n := range messages {
		messages[n] = &sarama.ProducerMessage{Topic: topic, Partition: int32(n % partitions),
			Key:   sarama.StringEncoder(fmt.Sprintf("key-%d", n)),
			Value: sarama.StringEncoder(fmt.Sprintf("%s-%d", codec, n))}
		if config.Version.IsAtLeast(sarama.V0_11_0_0) {
			messages[n].Headers = []sarama.RecordHeader{{Key: []byte("codec"), Value: []byte(codec)}}
		}
	}
	check(producer.SendMessages(messages))
	check(producer.Close())
	check(client.Close())
}

func read(consumer sarama.Consumer, topic string, partition int32, count int) {
	part, err := consumer.ConsumePartition(topic, partition, 0)
	check(err)
	for found := 0; found < count; found++ {
		select {
		case message := <-part.Messages():
			header := "-"
			if len(message.Headers) > 0 {
				header = string(message.Headers[0].Value)
			}
			fmt.Println(message.Partition, message.Offset, string(message.Key), string(message.Value), header)
		case <-time.After(20 * time.Second):
			log.Fatal("nothing to read")
		}
	}
	check(part.Close())
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
