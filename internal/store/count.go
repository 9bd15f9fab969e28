package store

import (
	"context"
	"strconv"
	"time"

	"github.com/gomodule/redigo/redis"
)

// Span counts something within a time that begins with the first one.
type Span struct {
	ID   string
	Most int
	Per  time.Duration
}

// count adds one to each span unless one of them is full. It returns 0, or the index of that
// one, from 1, and how many milliseconds it still lasts.
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

// milliseconds returns a time as the server reads it, at least 1.
func milliseconds(d time.Duration) string {
	return strconv.FormatInt(max(d.Milliseconds(), 1), 10)
}
