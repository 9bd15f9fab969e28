package policy

import "sync"

// fact is a value that is computed when it is first needed. The zero value is ready to use.
type fact[T any] struct {
	once  sync.Once
	value T
}

func (f *fact[T]) get(compute func() T) T {
	f.once.Do(func() { f.value = compute() })
	return f.value
}

// factOf holds a fact for each key. The zero value is ready to use.
type factOf[K comparable, V any] struct{ facts sync.Map }

func (f *factOf[K, V]) get(key K, compute func() V) V {
	x, ok := f.facts.Load(key)
	if !ok {
		x, _ = f.facts.LoadOrStore(key, &fact[V]{})
	}
	return x.(*fact[V]).get(compute)
}
