// Reads in a group with franz-go, segmentio/kafka-go or IBM/sarama, commits what it read, and leaves.
// Arguments: library bootstrap topic group count; a line a record: partition offset.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"strconv"
	"time"

	"github.com/IBM/sarama"
	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kgo"
)

func main() {
	count, err := strconv.Atoi(os.Args[5])
	check(err)
	ctx, cancel := context.WithTimeout(context.Background(), 40*time.Second)
	defer cancel()
	read := map[string]func(context.Context, string, string, string, int){
		"franz": franz, "kafkago": kafkago, "sarama": readSarama}[os.Args[1]]
	read(ctx, os.Args[2], os.Args[3], os.Args[4], count)
}

func franz(ctx context.Context, bootstrap, topic, group string, count int) {
	client, err := kgo.NewClient(kgo.SeedBrokers(bootstrap), kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic),
		kgo.Balancers(kgo.RangeBalancer()), kgo.DisableAutoCommit(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	check(err)
	for found := 0; found < count; {
		fetches := client.PollFetches(ctx)
		check(fetches.Err())
		fetches.EachRecord(func(record *kgo.Record) {
			found++
			fmt.Println(record.Partition, record.Offset)
		})
	}
	check(client.CommitUncommittedOffsets(ctx))
	client.Close()
}

func kafkago(ctx context.Context, bootstrap, topic, group string, count int) {
	reader := kafka.NewReader(kafka.ReaderConfig{Brokers: []string{bootstrap}, Topic: topic, GroupID: group,
		MaxWait: 200 * time.Millisecond, StartOffset: kafka.FirstOffset, GroupBalancers: []kafka.GroupBalancer{
			kafka.RangeGroupBalancer{}}})
	for found := 0; found < count; found++ {
		message, err := reader.FetchMessage(ctx)
		check(err)
		fmt.Println(message.Partition, message.Offset)
		check(reader.CommitMessages(ctx, message))
	}
	check(reader.Close())
}

type taking struct {
	left chan struct{}
	stop context.CancelFunc
}

func (taking) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (taking) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (one taking) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for {
		select {
		case message := <-claim.Messages():
			if message == nil {
				return nil
			}
			fmt.Println(message.Partition, message.Offset)
			session.MarkMessage(message, "")
			<-one.left
			if len(one.left) == 0 {
				one.stop()
			}
		case <-session.Context().Done():
			return nil
		}
	}
}

func readSarama(ctx context.Context, bootstrap, topic, group string, count int) {
	config := sarama.NewConfig()
	config.Version = sarama.V2_8_0_0
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	client, err := sarama.NewConsumerGroup([]string{bootstrap}, group, config)
	check(err)
	reading, stop := context.WithCancel(ctx)
	left := make(chan struct{}, count)
	for n := 0; n < count; n++ {
		left <- struct{}{}
	}
	check(client.Consume(reading, []string{topic}, taking{left, stop}))
	check(client.Close())
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
