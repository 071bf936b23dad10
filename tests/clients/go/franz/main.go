// Creates a topic, produces with each codec and reads it back by partition, with franz-go.
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

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

const partitions = 3

var codecs = map[string]kgo.CompressionCodec{
	"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
	"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
}

func main() {
	bootstrap, topic := os.Args[1], os.Args[2]
	count, err := strconv.Atoi(os.Args[3])
	check(err)
	names := strings.Split(os.Args[4], ",")
	ctx, cancel := context.WithTimeout(context.Background(), 40*time.Second)
	defer cancel()
	create(ctx, bootstrap, topic)
	for _, codec := range names {
		produce(ctx, bootstrap, topic, count, codec)
	}
	read(ctx, bootstrap, topic, count*len(names))
}

func create(ctx context.Context, bootstrap, topic string) {
	client, err := kgo.NewClient(kgo.SeedBrokers(bootstrap))
	check(err)
	defer client.Close()
	_, err = kadm.NewClient(client).CreateTopic(ctx, partitions, 1, nil, topic)
	check(err)
}

func produce(ctx context.Context, bootstrap, topic string, count int, codec string) {
	client, err := kgo.NewClient(kgo.SeedBrokers(bootstrap), kgo.ProducerBatchCompression(codecs[codec]),
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(20*time.Millisecond))
	check(err)
	defer client.Close()
	records := make([]*kgo.Record, count)
	for n := range records {
		records[n] = &kgo.Record{Topic: topic, Partition: int32(n % partitions),
			Key: []byte(fmt.Sprintf("key-%d", n)), Value: []byte(fmt.Sprintf("%s-%d", codec, n)),
			Headers: []kgo.RecordHeader{{Key: "codec", Value: []byte(codec)}}}
	}
	check(client.ProduceSync(ctx, records...).FirstErr())
}

func read(ctx context.Context, bootstrap, topic string, count int) {
	starts := map[int32]kgo.Offset{}
	for index := int32(0); index < partitions; index++ {
		starts[index] = kgo.NewOffset().At(0)
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(bootstrap),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: starts}))
	check(err)
	defer client.Close()
	for found := 0; found < count; {
		fetches := client.PollFetches(ctx)
		check(fetches.Err())
		fetches.EachRecord(func(record *kgo.Record) {
			found++
			fmt.Println(record.Partition, record.Offset, string(record.Key), string(record.Value),
				string(record.Headers[0].Value))
		})
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
