package ui_test

import (
	"fmt"
	"testing"

	"github.com/toolreg/toolreg/internal/ui/ttytest"
)

func TestAsk(t *testing.T) {
	p := ttytest.New(t)
	got := make(chan string, 1)
	go func() {
		line, err := p.TTY.Ask(t.Context(), "Trust it? ")
		got <- fmt.Sprint(line, err)
	}()
	p.Await("Trust it? ", 1)
	p.Typed("of course\n")
	if s := <-got; s != "of course<nil>" {
		t.Errorf("%q", s)
	}
}

func TestSize(t *testing.T) {
	if c, r := ttytest.New(t).TTY.Size(); c != 80 || r != 24 {
		t.Errorf("%d by %d", c, r)
	}
}
