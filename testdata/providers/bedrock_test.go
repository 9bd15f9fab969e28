package providers_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/schemas"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/aws/smithy-go/transport/http/protocol/awsjson"
)

// shape is what every type of the AWS SDK is.
type shape interface {
	smithy.Deserializable
	smithy.Serializable
}

// decodeShape is decode for the types of the AWS SDK, which know no encoding/json.
func decodeShape(data []byte, into shape) error {
	wire := awsjson.New10(schemas.AmazonBedrockFrontendService)
	operation := smithy.NewOperationSchema(schemas.Converse, schemas.Converse, schemas.Converse)
	response := &smithyhttp.Response{Response: &http.Response{StatusCode: 200, Body: io.NopCloser(bytes.NewReader(data))}}
	if err := wire.DeserializeResponse(nil, operation, nil, response, into); err != nil {
		return fmt.Errorf("the SDK does not read it: %w", err)
	}
	request := smithyhttp.NewStackRequest().(*smithyhttp.Request)
	request.URL = &url.URL{Path: "/"}
	if err := wire.SerializeRequest(nil, operation, into, request); err != nil {
		return fmt.Errorf("the SDK does not write it: %w", err)
	}
	again, err := io.ReadAll(request.GetStream())
	if err != nil {
		return err
	}
	return equal(data, again)
}

func TestBedrock(t *testing.T) {
	out := toolreg(t, shared.settings, "", "schema", "--format", "bedrock", "--request", "--source", "mcp:*")
	if err := decodeShape(out, &types.ToolConfiguration{}); err != nil {
		t.Fatal(err)
	}
	var config struct {
		Tools []struct {
			ToolSpec struct {
				Name        string
				Description *string
				InputSchema struct{ JSON json.RawMessage }
			}
		}
	}
	if err := json.Unmarshal(out, &config); err != nil {
		t.Fatal(err)
	}
	names := newNames(t)
	for _, tool := range config.Tools {
		spec := tool.ToolSpec
		if !dashed.MatchString(spec.Name) || spec.Description != nil && *spec.Description == "" {
			t.Errorf("name %q, an empty description", spec.Name)
		}
		if err := checkFlat(spec.Name, spec.InputSchema.JSON); err != nil {
			t.Error(err)
		}
		names.add(spec.Name)
	}
	names.want(len(names.seen), declarable(oddParams))
}
