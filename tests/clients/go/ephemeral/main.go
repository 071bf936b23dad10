// A test as a Go project has it: starts `kavka broker --ephemeral`, sends and reads a record, ends the broker.
// Arguments: the kavka command. Prints the record, then the broker's exit code.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// kavka starts a broker that lives until stop is called, or this process is gone.
func kavka(command string) (bootstrap string, stop func() int) {
	broker := exec.Command(command, "broker", "--ephemeral")
	broker.Stderr = os.Stderr
	stdin, err := broker.StdinPipe()
	check(err)
	stdout, err := broker.StdoutPipe()
	check(err)
	check(broker.Start())
	var serving struct {
		BootstrapServers string `json:"bootstrap_servers"`
	}
	check(json.NewDecoder(stdout).Decode(&serving))
	return serving.BootstrapServers, func() int {
		check(stdin.Close())
		_, _ = io.Copy(io.Discard, stdout)
		_ = broker.Wait()
		return broker.ProcessState.ExitCode()
	}
}

func main() {
	bootstrap, stop := kavka(os.Args[1])
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	client, err := kgo.NewClient(
		kgo.SeedBrokers(bootstrap), kgo.AllowAutoTopicCreation(), kgo.ConsumeTopics("orders"), kgo.ConsumerGroup("g"),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	check(err)
	check(client.ProduceSync(ctx, &kgo.Record{Topic: "orders", Value: []byte("go")}).FirstErr())
	fetched := client.PollFetches(ctx)
	check(fetched.Err())
	for _, record := range fetched.Records() {
		fmt.Println(string(record.Value))
	}
	client.Close()
	fmt.Println(stop())
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
