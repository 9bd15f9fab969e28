package store

import (
	"context"
	"encoding/binary"
	"strconv"
	"time"

	"github.com/gomodule/redigo/redis"
)

// Value is a stored value.
type Value struct {
	Data    []byte
	sealed  string // as stored on the server; "" means not stored
	counter uint64 // see freshness
}

// Exists reports whether there is a value.
func (v Value) Exists() bool { return v.sealed != "" && v.Data != nil }

// opened opens a sealed value. A value older than one that this process has seen under the name
// does not exist: somebody has restored it.
func (s *Store) opened(name, sealed string) Value {
	if sealed == "" {
		return Value{}
	}
	counter, data, err := s.sealer.openCounted(name, sealed)
	if err != nil || !s.fresh.accept(name, counter) {
		return Value{sealed: sealed} // can be replaced
	}
	return Value{append([]byte{}, data...), sealed, counter}
}

// seal seals a value that is newer than all that this process has seen under the name. Once the
// server has stored it, pass its counter to s.fresh.
func (s *Store) seal(name string, data []byte) (sealed string, counter uint64) {
	counter = s.fresh.next(name, time.Now())
	return s.sealer.seal(name+counted, append(binary.BigEndian.AppendUint64(nil, counter), data...)), counter
}

// Put stores a value under the id of a kind until ttl is over.
func (s *Store) Put(ctx context.Context, kind, id string, data []byte, ttl time.Duration) error {
	name := s.name(kind, id)
	sealed, counter := s.seal(name, data)
	_, err := s.do(ctx, "SET", name, sealed, "PX", milliseconds(ttl))
	if err == nil {
		s.fresh.accept(name, counter)
		s.refuses.Store(false)
		s.report(nil)
	}
	return err
}

// Get returns a value; see [Value.Exists].
func (s *Store) Get(ctx context.Context, kind, id string) (Value, error) {
	return s.get(ctx, s.name(kind, id))
}

func (s *Store) get(ctx context.Context, name string) (v Value, err error) {
	for again := true; again; {
		before := s.fresh.known(name)
		sealed, err := textOf(s.do(ctx, "GET", name))
		if err != nil {
			return Value{}, err
		}
		v = s.opened(name, sealed)
		// It may have been read just before this process has replaced it.
		again = !v.Exists() && s.fresh.known(name) != before
	}
	return v, nil
}

// swap replaces a value if it is the expected one, and returns the value that is stored afterwards.
const swap = `
local now = redis.call('GET', KEYS[1]) or ''
if now ~= ARGV[1] then return now end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
return ARGV[2]`

// Swap replaces the value old, or stores one if old does not exist, until ttl is over. It returns
// the value that is stored afterwards, and whether that is the new one.
func (s *Store) Swap(ctx context.Context, kind, id string, old Value,
	data []byte, ttl time.Duration) (v Value, swapped bool, err error) {
	name := s.name(kind, id)
	sealed, _ := s.seal(name, data)
	now, err := textOf(s.eval(ctx, swap, []string{name}, old.sealed, sealed, milliseconds(ttl)))
	if err != nil {
		return Value{}, false, err
	}
	return s.opened(name, now), now == sealed, nil
}

// Delete removes a value.
func (s *Store) Delete(ctx context.Context, kind, id string) error {
	return s.delete(ctx, s.name(kind, id))
}

func (s *Store) delete(ctx context.Context, name string) error {
	s.fresh.over(name, 0)
	_, err := s.do(ctx, "DEL", name)
	return err
}

// scanned is how many names a request of [Store.Each] examines.
const scanned = 1000

// Each calls use with each value of a kind and a function that removes it, until use returns an
// error. It may miss values that are stored meanwhile.
func (s *Store) Each(ctx context.Context, kind string,
	use func(data []byte, remove func(context.Context) error) error) error {
	names := map[string]bool{} // the server may repeat some
	for cursor, more := uint64(0), true; more; more = cursor != 0 {
		page, err := redis.Values(s.do(ctx, "SCAN", cursor, "MATCH", s.prefix+":"+kind+":*", "COUNT", scanned))
		var found []string
		if err == nil {
			_, err = redis.Scan(page, &cursor, &found)
		}
		if err != nil {
			return err
		}
		for _, name := range found {
			names[name] = true
		}
	}
	for name := range names {
		v, err := s.get(ctx, name)
		if err == nil && v.Exists() {
			err = use(v.Data, func(ctx context.Context) error { return s.delete(ctx, name) })
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// A value that is taken once is valid only for the server process that stored it: a process that
// has taken its place may not know that it was taken.
const running = `local run = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)') or ''
`

const (
	offer = running + `redis.call('SET', KEYS[1], run .. ':' .. ARGV[1], 'PX', ARGV[2])
return 1`
	look = running + `local now = redis.call('GET', KEYS[1]) or ''
if string.sub(now, 1, #run + 1) ~= run .. ':' then return '' end
return string.sub(now, #run + 2)`
	take = running + `local now = redis.call('GET', KEYS[1]) or ''
redis.call('DEL', KEYS[1])
if string.sub(now, 1, #run + 1) ~= run .. ':' then return '' end
return string.sub(now, #run + 2)`
)

// Offer stores a value for one [Store.Take], until ttl is over or the server is started again.
func (s *Store) Offer(ctx context.Context, kind, id string, data []byte, ttl time.Duration) error {
	name := s.name(kind, id)
	sealed, counter := s.seal(name, data)
	_, err := s.eval(ctx, offer, []string{name}, sealed, milliseconds(ttl))
	if err == nil {
		s.fresh.accept(name, counter)
	}
	return err
}

// Look returns a value of [Store.Offer] that has not been taken.
func (s *Store) Look(ctx context.Context, kind, id string) (Value, error) {
	return s.offered(ctx, look, kind, id)
}

// Take removes a value of [Store.Offer] and returns it. At most one caller gets it, and none after
// an error.
func (s *Store) Take(ctx context.Context, kind, id string) (Value, error) {
	v, err := s.offered(ctx, take, kind, id)
	if v.Exists() {
		s.fresh.over(s.name(kind, id), v.counter)
	}
	return v, err
}

func (s *Store) offered(ctx context.Context, script, kind, id string) (Value, error) {
	name := s.name(kind, id)
	sealed, err := textOf(s.eval(ctx, script, []string{name}))
	if err != nil || sealed == "" {
		return Value{}, err
	}
	return s.opened(name, sealed), nil
}

// Span limits a count within a time that begins with the first one.
type Span struct {
	ID   string
	Most int
	Per  time.Duration
}

// count adds one to each span unless one of them is full. It returns 0, or the index from 1 of the
// full one and how many milliseconds it still lasts.
const count = `
for i, key in ipairs(KEYS) do
  if tonumber(redis.call('GET', key) or '0') >= tonumber(ARGV[2 * i - 1]) then
    return {i, redis.call('PTTL', key)}
  end
end
for i, key in ipairs(KEYS) do
  if redis.call('INCR', key) == 1 then redis.call('PEXPIRE', key, ARGV[2 * i]) end
end
return {0, 0}`

// Count adds one to each span. If one of them is full, it adds nothing and returns the index
// of that one and how long it lasts; otherwise full is -1.
func (s *Store) Count(ctx context.Context, spans []Span) (full int, left time.Duration, err error) {
	names, args := make([]string, len(spans)), []any{}
	for i, span := range spans {
		names[i] = s.name("count", span.ID)
		args = append(args, strconv.Itoa(span.Most), milliseconds(span.Per))
	}
	answer, err := redis.Ints(s.eval(ctx, count, names, args...))
	if err != nil || len(answer) != 2 {
		return -1, 0, err
	}
	return answer[0] - 1, time.Duration(answer[1]) * time.Millisecond, nil
}

// milliseconds returns a duration in the server's notation, at least 1.
func milliseconds(d time.Duration) string {
	return strconv.FormatInt(max(d.Milliseconds(), 1), 10)
}

// Wait waits until the server can be used, or ctx is done.
func (s *Store) Wait(ctx context.Context) error {
	for {
		if err := s.Put(ctx, "start", "", nil, time.Second); err == nil {
			return nil
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
