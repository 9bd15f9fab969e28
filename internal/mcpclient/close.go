package mcpclient

import (
	"maps"
	"sync"
	"time"

	"github.com/toolreg/toolreg/internal/mcpclient/wire"
)

// CloseIdle ends the session if the server was not called for a time and reports no
// changes of resources, and the sessions of owners who are gone. The next call starts the
// server again. d <= 0 means for ever.
func (s *Source) CloseIdle(d time.Duration, gone func(owner any) bool) {
	s.mu.Lock()
	sessions := maps.Clone(s.sessions)
	if len(s.subscribed) > 0 {
		delete(sessions, nil)
	}
	s.mu.Unlock()
	for owner, sess := range sessions {
		unused := d
		if owner != nil && gone(owner) {
			unused = time.Nanosecond
		}
		if unused <= 0 || !sess.wire.Alive() && owner == nil || !sess.idle(unused) {
			continue
		}
		s.log().Debug("closing an idle server", "server", s.opts.Server.Name)
		sess.end()
		s.mu.Lock()
		if owner != nil && s.sessions[owner] == sess {
			delete(s.sessions, owner)
		}
		s.mu.Unlock()
	}
}

// Close ends the session and a stdio server's process group, within two
// seconds. It may be called at any time and more than once; running calls fail.
func (s *Source) Close() error {
	s.mu.Lock()
	s.closed = true
	sessions := maps.Clone(s.sessions)
	for _, cancel := range s.cancels {
		cancel(wire.ErrClosed)
	}
	s.mu.Unlock()
	if len(sessions) == 0 {
		return nil
	}
	var ending sync.WaitGroup
	for _, sess := range sessions {
		ending.Go(sess.end)
	}
	ending.Wait()
	s.mu.Lock()
	was := s.info.State
	s.mu.Unlock()
	if was == StateConnected {
		s.setState(StateDisconnected, nil)
	}
	return nil
}
