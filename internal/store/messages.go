package store

import (
	"context"
	"time"

	"github.com/valkey-io/valkey-go"
)

// maxMessage is the maximum size of a message; the server sends no larger ones to clients
// anyway, by its default client-output-buffer-limit.
const maxMessage = 24 << 20

// Send sends a message to the subscribers of a channel that are connected now, and returns how
// many they are.
func (s *Store) Send(ctx context.Context, channel string, data []byte) (receivers int, err error) {
	name := s.name("channel", channel)
	err = s.do(ctx, func(ctx context.Context, c valkey.Client) error {
		n, err := c.Do(ctx, c.B().Publish().Channel(name).Message(s.sealer.seal(name, data)).Build()).AsInt64()
		receivers = int(n)
		return err
	})
	return receivers, err
}

// Receive calls receive with each message of a channel, in order, until ctx is done and all that
// [Store.Send] has counted this receiver for have arrived. It must not wait. ready is called when messages can arrive, and lost when some may have been missed.
// Messages that no replica has sealed for the channel are dropped.
func (s *Store) Receive(ctx context.Context, channel string, ready, lost func(), receive func(data []byte)) {
	name := s.name("channel", channel)
	for ctx.Err() == nil {
		err := s.subscribe(ctx, name, ready, receive)
		if ctx.Err() != nil {
			return
		}
		s.report(err)
		lost()
		retry := time.NewTimer(pause)
		select {
		case <-retry.C:
		case <-ctx.Done():
			retry.Stop()
		}
	}
}

// subscribe receives messages until its connection, which is none of the others, ends.
func (s *Store) subscribe(ctx context.Context, name string, ready func(), receive func([]byte)) error {
	limited, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	client, err := s.connected(limited)
	if err != nil {
		return err
	}
	connection, release := client.Dedicate()
	defer release()
	over := connection.SetPubSubHooks(valkey.PubSubHooks{OnMessage: func(m valkey.PubSubMessage) {
		if len(m.Message) > maxMessage || m.Channel != name {
			return
		}
		if data, err := s.sealer.open(name, m.Message); err == nil {
			receive(data)
		}
	}})
	if err := connection.Do(limited, connection.B().Subscribe().Channel(name).Build()).Error(); err != nil {
		return err
	}
	ready()
	select {
	case err := <-over:
		return err
	case <-ctx.Done():
	}
	ending, stop := context.WithTimeout(context.WithoutCancel(ctx), Timeout)
	defer stop()
	_ = connection.Do(ending, connection.B().Unsubscribe().Channel(name).Build()).Error() // its answer comes after the last message
	return ctx.Err()
}
