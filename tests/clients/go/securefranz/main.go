// Produces a record to partition 0 by a secure listener and prints what it reads back, with franz-go.
// Arguments: bootstrap topic authority.pem|- mechanism|- user secret; for OAUTHBEARER the secret is a token.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

func main() {
	bootstrap, topic, authority, name, user, secret := os.Args[1], os.Args[2], os.Args[3], os.Args[4], os.Args[5], os.Args[6]
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	options := []kgo.Opt{kgo.SeedBrokers(bootstrap), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().At(0)}})}
	if authority != "-" {
		trusted := x509.NewCertPool()
		pem, err := os.ReadFile(authority)
		check(err)
		trusted.AppendCertsFromPEM(pem)
		options = append(options, kgo.DialTLSConfig(&tls.Config{RootCAs: trusted}))
	}
	if name != "-" {
		options = append(options, kgo.SASL(mechanism(name, user, secret)))
	}
	client, err := kgo.NewClient(options...)
	check(err)
	defer client.Close()
	// A login that fails is tried again for as long as records wait: the first answer tells of it at once.
	check(client.Ping(ctx))
	check(client.ProduceSync(ctx, &kgo.Record{Topic: topic, Partition: 0, Value: []byte("value")}).FirstErr())
	fetches := client.PollFetches(ctx)
	check(fetches.Err())
	fetches.EachRecord(func(record *kgo.Record) { fmt.Println(string(record.Value)) })
}

func mechanism(name, user, secret string) sasl.Mechanism {
	switch name {
	case "PLAIN":
		return plain.Auth{User: user, Pass: secret}.AsMechanism()
	case "SCRAM-SHA-256":
		return scram.Auth{User: user, Pass: secret}.AsSha256Mechanism()
	case "SCRAM-SHA-512":
		return scram.Auth{User: user, Pass: secret}.AsSha512Mechanism()
	}
	return oauth.Auth{Token: secret}.AsMechanism()
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
