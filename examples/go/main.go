// Command agent is an agent in Go, with the standard library and toolreg:
// OpenAI's Responses API.
//
//	cd examples/go && go build -o agent . && OPENAI_API_KEY=… ./agent 'What does go.mod say?'
package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: agent PROMPT")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "agent:", err)
		os.Exit(1)
	}
}

// response is what is read of a response; the items go back as they came.
type response struct {
	Output []json.RawMessage `json:"output"`
}

func run(prompt string) error {
	tools, err := toolreg(nil, "schema", "--format", "openai-responses", "--request", "--defer", "auto")
	if err != nil {
		return err
	}
	first, err := json.Marshal(map[string]string{"role": "user", "content": prompt})
	if err != nil {
		return err
	}
	input := []json.RawMessage{first}
	for {
		data, err := ask(tools, input)
		if err != nil {
			return err
		}
		var r response
		if err := json.Unmarshal(data, &r); err != nil {
			return fmt.Errorf("reading the response: %w", err)
		}
		input = append(input, r.Output...)
		reply, err := toolreg(data, "call", "--format", "openai-responses")
		if err != nil {
			return err
		}
		if len(reply) == 0 { // no tool was called: the model is done
			return printText(r.Output)
		}
		for line := range bytes.Lines(reply) {
			input = append(input, json.RawMessage(line))
		}
	}
}

// toolreg runs toolreg and returns what it printed; its messages go to our
// stderr.
func toolreg(stdin []byte, args ...string) ([]byte, error) {
	cmd := exec.Command("toolreg", args...)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(stdin), os.Stderr
	return cmd.Output()
}

// ask sends the conversation and returns the response.
func ask(tools json.RawMessage, input []json.RawMessage) ([]byte, error) {
	body, err := json.Marshal(map[string]any{
		"model": cmp.Or(os.Getenv("OPENAI_MODEL"), "gpt-5.4"), "tools": tools, "input": input,
	})
	if err != nil {
		return nil, err
	}
	url := cmp.Or(os.Getenv("OPENAI_BASE_URL"), "https://api.openai.com/v1") + "/responses"
	request, err := http.NewRequest(http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+os.Getenv("OPENAI_API_KEY"))
	request.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode != http.StatusOK {
		return nil, errors.New(answer.Status + ": " + string(data))
	}
	return data, nil
}

// printText prints what the model says.
func printText(output []json.RawMessage) error {
	for _, raw := range output {
		var item struct {
			Content []struct {
				Type string `json:"type"`
				Text string `json:"text"`
			} `json:"content"`
		}
		if err := json.Unmarshal(raw, &item); err != nil {
			return err
		}
		for _, part := range item.Content {
			if part.Type == "output_text" {
				fmt.Println(part.Text)
			}
		}
	}
	return nil
}
