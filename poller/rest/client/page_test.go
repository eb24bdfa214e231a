package client

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestRowsAreFoundWhereverTheEnvelopePutsThem(t *testing.T) {
	for _, body := range []string{
		`{"data":[{"id":1,"name":"a ] } \" \\"},{"id":2}],` +
			`"meta":{"page":0,"page_size":2,"count":7,"has_more":true}}`,
		`{"meta":{"has_more":true,"count":7,"page":0,"page_size":2},` +
			`"data":[{"id":1,"name":"a ] } \" \\"},{"id":2}]}`,
		"\n { \"extra\" : [1, {\"data\":[]}], \"data\" : " +
			"[ {\"id\":1,\"name\":\"a ] } \\\" \\\\\"} , {\"id\":2} ] , " +
			"\"meta\" : {\"page\":0.0,\"page_size\":2,\"count\":7,\"has_more\":true} }\n",
	} {
		p, err := openPage([]byte(body), nil)
		if err != nil || len(p.Rows) != 2 || !p.More || p.Count != 7 || p.Number != 0 || p.Size != 2 ||
			string(p.Rows[0]) != `{"id":1,"name":"a ] } \" \\"}` || string(p.Rows[1]) != `{"id":2}` {
			t.Errorf("%s: %q %+v %v", body, p.Rows, p, err)
		}
	}
	whole := `{"data":[{"id":1,"name":"a"},NaN,3],"meta":{"has_more":false}}`
	if p, err := openPage([]byte(whole), nil); err != nil || len(p.Rows) != 3 || p.Count != -1 {
		t.Errorf("%+v %v", p, err)
	}
	for i := range whole {
		if _, err := openPage([]byte(whole[:i]), nil); !errors.Is(err, errCut) {
			t.Errorf("cut at %d: %v", i, err)
		}
	}
	noJSON := []string{`<html>`, `[]`, `"x"`, `{"data":[] "meta":{}}`, `{"data":[]} x`, `{"data" []}`}
	for _, body := range noJSON {
		if _, err := openPage([]byte(body), nil); !errors.Is(err, errNotJSON) {
			t.Errorf("%s: %v", body, err)
		}
	}
	for _, body := range []string{
		`{}`, `{"data":[]}`, `{"data":{},"meta":{"has_more":false}}`, `{"data":[],"meta":{"has_more":"no"}}`,
		`{"data":[],"meta":7}`,
	} {
		if _, err := openPage([]byte(body), nil); err == nil {
			t.Errorf("%s was taken", body)
		}
	}
	many := `{"data":[1` + strings.Repeat(",1", maxRows) + `],"meta":{"has_more":false}}`
	if p, err := openPage([]byte(many), nil); !errors.Is(err, errTooMuch) || len(p.Rows) > maxRows {
		t.Errorf("%d rows: %v", len(p.Rows), err)
	}
}

func BenchmarkFindingTheRowsOfAPage(b *testing.B) {
	body := []byte(`{"data":[`)
	for i := range 1000 {
		if i > 0 {
			body = append(body, ',')
		}
		body = fmt.Appendf(body, `{"id":%d,"first_name":"Anna","email":"anna%d@example.org","age":41,`+
			`"latitude":-19.9026,"street_address":"%d Example Avenue Suite 7","postal_code":"31110-000",`+
			`"city":"Belo Horizonte",`+
			`"created_at":"2021-03-04T05:06:07Z","updated_at":"2026-11-20T10:%02d:%02dZ"}`, i+1, i, i, i/60%60, i%60)
	}
	body = append(body, `],"meta":{"page":0,"page_size":1000,"count":1000,"has_more":false}}`...)
	var rows [][]byte
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		p, err := openPage(body, rows)
		if err != nil || len(p.Rows) != 1000 {
			b.Fatal(len(p.Rows), err)
		}
		rows = p.Rows
	}
}
