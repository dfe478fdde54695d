// Package ottlabroker runs `ottla broker` for a test. Copy this file into a folder of your module; `ottla` is on the PATH, or OTTLA
// names the program.
package ottlabroker

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const timeout = 30 * time.Second

// Broker is a broker on a free port. It ends with the test that started it.
type Broker struct {
	// BootstrapServers is the address for clients.
	BootstrapServers string

	t       testing.TB
	command *exec.Cmd
	errors  bytes.Buffer
	exited  chan struct{}

	mutex      sync.Mutex
	properties map[string]string
	// changed is closed and replaced when there is a new property.
	changed chan struct{}
}

// Start starts a broker with options of `ottla broker`, and waits until it answers.
func Start(t testing.TB, options ...string) *Broker {
	t.Helper()
	program := os.Getenv("OTTLA")
	if program == "" {
		program = "ottla"
	}
	broker := &Broker{
		t:          t,
		command:    exec.Command(program, append([]string{"broker", "--port", "0"}, options...)...),
		exited:     make(chan struct{}),
		properties: map[string]string{},
		changed:    make(chan struct{}),
	}
	broker.command.Stderr = &broker.errors
	output, err := broker.command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := broker.command.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		for lines := bufio.NewScanner(output); lines.Scan(); {
			if name, value, found := strings.Cut(lines.Text(), "="); found {
				broker.put(name, value)
			}
		}
		_ = broker.command.Wait()
		close(broker.exited)
	}()
	t.Cleanup(broker.stop)
	broker.BootstrapServers = broker.Property("bootstrap.servers")
	return broker
}

// Property returns a property that the broker prints, such as control or sasl.password; it waits until it is there.
func (broker *Broker) Property(name string) string {
	broker.t.Helper()
	deadline := time.After(timeout)
	for {
		broker.mutex.Lock()
		value, found := broker.properties[name]
		changed := broker.changed
		broker.mutex.Unlock()
		if found {
			return value
		}
		select {
		case <-changed:
		case <-broker.exited:
			broker.t.Fatalf("ottla broker ended before it printed %s: %s", name, broker.errors.String())
		case <-deadline:
			broker.t.Fatalf("ottla broker does not print %s", name)
		}
	}
}

func (broker *Broker) put(name, value string) {
	broker.mutex.Lock()
	defer broker.mutex.Unlock()
	if _, found := broker.properties[name]; !found {
		broker.properties[name] = value
		close(broker.changed)
		broker.changed = make(chan struct{})
	}
}

// stop ends the broker, and waits for its end.
func (broker *Broker) stop() {
	_ = broker.command.Process.Signal(syscall.SIGTERM)
	select {
	case <-broker.exited:
	case <-time.After(timeout):
		_ = broker.command.Process.Kill()
		<-broker.exited
	}
}
