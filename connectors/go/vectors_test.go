package frontrow

import (
	"encoding/json"
	"os"
	"reflect"
	"testing"
)

// TestVectors runs connectors/vectors.json in this runtime: `go test`.
func TestVectors(t *testing.T) {
	raw, err := os.ReadFile("../vectors.json")
	var file struct {
		Fresh   string
		Setups  map[string]Setup
		Rooms   map[string]Told
		Vectors []struct {
			Name, Setup, Room, Method, Target string
			NowS                              int64 `json:"now_s"`
			Headers                           map[string]string
			Expect                            Decision
		}
	}
	if err != nil || json.Unmarshal(raw, &file) != nil || len(file.Vectors) < 200 {
		t.Fatal("vectors.json cannot be read", err)
	}
	right := 0
	for _, v := range file.Vectors {
		found := Decide(file.Setups[v.Setup], Learn(Known{}, file.Rooms[v.Room]), v.Method, v.Target, v.Headers, v.NowS, file.Fresh)
		if !reflect.DeepEqual(found, v.Expect) {
			t.Errorf("%s\n  found  %+v\n  wanted %+v", v.Name, found, v.Expect)
			continue
		}
		right++
	}
	t.Logf("%d of %d vectors", right, len(file.Vectors))
}
