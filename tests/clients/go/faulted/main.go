// What tests/support/faulted_clients.py asks of a client, a line each, with franz-go: `produce TOPIC VALUE`, exactly
// once however often it takes; `once TOPIC VALUE`, told at once what is not to be tried again; `consume TOPIC GROUP
// COUNT`, as a member that commits. Answers: `ok`, `error CODE` or `read VALUE,VALUE`. Argument: bootstrap.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

func main() {
	bootstrap := os.Args[1]
	producer := client(bootstrap)
	defer producer.Close()
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		switch words[0] {
		case "produce":
			fmt.Println(send(producer, words[1], words[2]))
		case "once":
			single := client(bootstrap, kgo.DisableIdempotentWrite())
			fmt.Println(send(single, words[1], words[2]))
			single.Close()
		default:
			count, err := strconv.Atoi(words[3])
			check(err)
			fmt.Println(consume(bootstrap, words[1], words[2], count))
		}
	}
}

func client(bootstrap string, others ...kgo.Opt) *kgo.Client {
	settings := []kgo.Opt{kgo.SeedBrokers(bootstrap), kgo.ClientID("go"), kgo.ProducerLinger(0),
		kgo.ProduceRequestTimeout(500 * time.Millisecond), kgo.RequestTimeoutOverhead(time.Second),
		kgo.MetadataMinAge(50 * time.Millisecond),
		kgo.RetryBackoffFn(func(int) time.Duration { return 50 * time.Millisecond })}
	made, err := kgo.NewClient(append(settings, others...)...)
	check(err)
	return made
}

func send(producer *kgo.Client, topic, value string) string {
	err := producer.ProduceSync(context.Background(), &kgo.Record{Topic: topic, Value: []byte(value)}).FirstErr()
	var told *kerr.Error
	if errors.As(err, &told) {
		return fmt.Sprint("error ", told.Code)
	}
	check(err)
	return "ok"
}

func consume(bootstrap, topic, group string, count int) string {
	member := client(bootstrap, kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic), kgo.DisableAutoCommit(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	defer member.Close()
	var read []string
	for len(read) < count {
		member.PollFetches(context.Background()).EachRecord(func(record *kgo.Record) {
			read = append(read, string(record.Value))
		})
	}
	check(member.CommitUncommittedOffsets(context.Background()))
	return "read " + strings.Join(read, ",")
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
