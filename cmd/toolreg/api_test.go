package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
)

// handleAPI is the API below /api/ of the website of scripts. It returns each request as an
// object, except that the last segment of a path asks for something else: a list, a number,
// text, a picture, no content, a problem, or a redirect to the address in the query.
func handleAPI(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body) // what there is of it
	respond := func(kind string, status int, data string) {
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(status)
		fmt.Fprint(w, data)
	}
	switch r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:] {
	case "list":
		respond("application/json", http.StatusOK, `[{"name":"Ada","id":1},{"name":"Bo","id":"two"}]`)
	case "number":
		respond("application/json; charset=utf-8", http.StatusOK, "12345678901234567890")
	case "text":
		respond("text/plain; charset=iso-8859-1", http.StatusOK, "caf\xe9")
	case "picture":
		data, _ := base64.StdEncoding.DecodeString("R0lGODlhAQABAAAAACwAAAAAAQABAAA=")
		respond("image/gif", http.StatusOK, string(data))
	case "nothing":
		w.WriteHeader(http.StatusNoContent)
	case "made":
		w.Header().Set("Location", "/made/7")
		w.WriteHeader(http.StatusCreated)
	case "problem":
		respond("application/problem+json", http.StatusConflict, `{"title":"Taken","detail":"The cage is full.","token":"`+r.Header.Get("Authorization")+`"}`)
	case "document": // with the validators of the file that the query names
		data, err := os.ReadFile(r.URL.Query().Get("file"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusNotFound)
			return
		}
		tag := fmt.Sprintf(`"%x"`, len(data))
		w.Header().Set("ETag", tag)
		if r.Header.Get("If-None-Match") == tag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		respond("application/yaml", http.StatusOK, string(data))
	case "to":
		http.Redirect(w, r, r.URL.Query().Get("url"), http.StatusFound)
	default:
		headers := map[string]string{}
		for name := range r.Header {
			headers[name] = r.Header.Get(name)
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"method": r.Method, "path": r.URL.EscapedPath(), "query": r.URL.RawQuery, "headers": headers, "body": string(body)})
	}
}
