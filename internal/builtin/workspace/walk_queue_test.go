package workspace

import (
	"testing"
	"testing/synctest"
)

// A worker without a task waits as long as another one may find folders, and ends with it.
func TestWorkersWaitForTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, f := &walker{}, &folder{}
		w.more.L = &w.mu
		w.push(task{folder: f})
		if _, ok := w.pop(); !ok {
			t.Fatal("there is no task")
		}
		got := make(chan bool, 2)
		for range 2 {
			go func() {
				_, ok := w.pop()
				got <- ok
			}()
		}
		synctest.Wait()
		if len(got) > 0 {
			t.Fatal("a worker did not wait")
		}
		w.push(task{folder: f})
		if !<-got {
			t.Error("no worker got the task")
		}
		w.done()
		synctest.Wait()
		if len(got) > 0 {
			t.Error("a worker did not wait for the last one")
		}
		w.done()
		if <-got {
			t.Error("there is a task")
		}
	})
}
