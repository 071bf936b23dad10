// Produces a record to partition 0 by a secure listener and prints what it reads back, with IBM/sarama.
// Arguments: bootstrap topic authority.pem|- mechanism|- user secret; for OAUTHBEARER the secret is a token.
package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/IBM/sarama"
	"github.com/xdg-go/scram"
)

// Sarama brings no SCRAM: its documentation has this around xdg-go's.
type exchange struct {
	hash scram.HashGeneratorFcn
	*scram.ClientConversation
}

func (e *exchange) Begin(user, password, authorizationID string) error {
	client, err := e.hash.NewClient(user, password, authorizationID)
	if err == nil {
		e.ClientConversation = client.NewConversation()
	}
	return err
}

// AccessTokenProvider that knows one.
type token string

func (t token) Token() (*sarama.AccessToken, error) {
	return &sarama.AccessToken{Token: string(t)}, nil
}

func main() {
	bootstrap, topic, authority, name, user, secret := os.Args[1], os.Args[2], os.Args[3], os.Args[4], os.Args[5], os.Args[6]
	config := sarama.NewConfig()
	config.Version = sarama.V3_6_0_0
	config.Producer.Return.Successes = true
	config.Producer.Partitioner = sarama.NewManualPartitioner
	if authority != "-" {
		trusted := x509.NewCertPool()
		pem, err := os.ReadFile(authority)
		check(err)
		trusted.AppendCertsFromPEM(pem)
		config.Net.TLS.Enable = true
		config.Net.TLS.Config = &tls.Config{RootCAs: trusted}
	}
	if name != "-" {
		config.Net.SASL.Enable = true
		config.Net.SASL.Mechanism = sarama.SASLMechanism(name)
		config.Net.SASL.User, config.Net.SASL.Password = user, secret
		config.Net.SASL.TokenProvider = token(secret)
		config.Net.SASL.SCRAMClientGeneratorFunc = func() sarama.SCRAMClient {
			if name == "SCRAM-SHA-256" {
				return &exchange{hash: scram.SHA256}
			}
			return &exchange{hash: scram.SHA512}
		}
	}
	client, err := sarama.NewClient([]string{bootstrap}, config)
	check(err)
	producer, err := sarama.NewSyncProducerFromClient(client)
	check(err)
	_, _, err = producer.SendMessage(&sarama.ProducerMessage{Topic: topic, Value: sarama.StringEncoder("value")})
	check(err)
	consumer, err := sarama.NewConsumerFromClient(client)
	check(err)
	part, err := consumer.ConsumePartition(topic, 0, 0)
	check(err)
	select {
	case message := <-part.Messages():
		fmt.Println(string(message.Value))
	case <-time.After(60 * time.Second):
		log.Fatal("nothing to read")
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
