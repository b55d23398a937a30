// Stores each event once in SQLite before it answers. See README.md.
package main

import (
	"crypto/rsa"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/golang-jwt/jwt/v4"
	_ "github.com/mattn/go-sqlite3"
)

const (
	app      = 1
	maxGroup = 256
	// The number of tokens in each of the two generations of the cache.
	maxTokens = 50_000
)

const schema = `CREATE TABLE IF NOT EXISTS event (
	position INTEGER PRIMARY KEY, app INTEGER NOT NULL, user TEXT NOT NULL, message_id TEXT NOT NULL,
	received_ms INTEGER NOT NULL, body TEXT NOT NULL, UNIQUE (app, user, message_id))`

const insertion = `INSERT INTO event (app, user, message_id, received_ms, body) VALUES (?, ?, ?, ?, ?)
	ON CONFLICT (app, user, message_id) DO NOTHING`

type identity struct {
	user    string
	expires time.Time
}

type verifier struct {
	key          *rsa.PublicKey
	mutex        sync.Mutex
	newer, older map[string]identity
}

func (v *verifier) cached(token string) (identity, bool) {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	if found, ok := v.newer[token]; ok {
		return found, true
	}
	found, ok := v.older[token]
	if ok {
		v.remember(token, found)
	}
	return found, ok
}

func (v *verifier) remember(token string, found identity) {
	if len(v.newer) >= maxTokens {
		v.older, v.newer = v.newer, make(map[string]identity, maxTokens)
	}
	v.newer[token] = found
}

// verify returns the user of a valid token.
func (v *verifier) verify(token string) (string, error) {
	if found, ok := v.cached(token); ok {
		if !time.Now().Before(found.expires) {
			return "", errors.New("expired")
		}
		return found.user, nil
	}
	var claims jwt.RegisteredClaims
	key := func(*jwt.Token) (interface{}, error) { return v.key, nil }
	if _, err := jwt.ParseWithClaims(token, &claims, key, jwt.WithValidMethods([]string{"RS256"})); err != nil {
		return "", err
	}
	if claims.ExpiresAt == nil || claims.Subject == "" {
		return "", errors.New("exp or sub is missing")
	}
	v.mutex.Lock()
	defer v.mutex.Unlock()
	v.remember(token, identity{claims.Subject, claims.ExpiresAt.Time})
	return claims.Subject, nil
}

type event struct {
	ID   string `json:"messageId"`
	User string `json:"userId"`
	body json.RawMessage
}

type request struct {
	events []event
	stored chan error
}

type server struct {
	writeKey string
	verifier verifier
	requests chan request
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost || r.URL.Path != "/v1/batch" {
		http.NotFound(w, r)
		return
	}
	authorization := r.Header.Get("Authorization")
	token := strings.TrimPrefix(authorization, "Bearer ")
	if token == authorization || r.Header.Get("X-Write-Key") != s.writeKey {
		http.Error(w, "unauthorized", http.StatusUnauthorized)
		return
	}
	user, err := s.verifier.verify(token)
	if err != nil {
		http.Error(w, "unauthorized", http.StatusUnauthorized)
		return
	}
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	var content struct{ Batch []json.RawMessage }
	if json.Unmarshal(text, &content) != nil || len(content.Batch) == 0 {
		http.Error(w, "malformed", http.StatusBadRequest)
		return
	}
	events := make([]event, len(content.Batch))
	for i, body := range content.Batch {
		if json.Unmarshal(body, &events[i]) != nil || events[i].ID == "" {
			http.Error(w, "malformed", http.StatusBadRequest)
			return
		}
		if events[i].User != user {
			http.Error(w, "another user", http.StatusUnauthorized)
			return
		}
		events[i].body = body
	}
	stored := make(chan error, 1)
	s.requests <- request{events, stored}
	if <-stored != nil {
		http.Error(w, "not stored", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"success":true,"accepted":%d}`, len(events))
}

// write commits the waiting requests in one transaction.
func (s *server) write(db *sql.DB, insert *sql.Stmt) {
	for first := range s.requests {
		group := []request{first}
	gather:
		for len(group) < maxGroup {
			select {
			case next := <-s.requests:
				group = append(group, next)
			default:
				break gather
			}
		}
		err := store(db, insert, group)
		for _, request := range group {
			request.stored <- err
		}
	}
}

func store(db *sql.DB, insert *sql.Stmt, group []request) error {
	transaction, err := db.Begin()
	if err != nil {
		return err
	}
	defer transaction.Rollback()
	statement := transaction.Stmt(insert)
	now := time.Now().UnixMilli()
	for _, request := range group {
		for _, event := range request.events {
			if _, err := statement.Exec(app, event.User, event.ID, now, string(event.body)); err != nil {
				return err
			}
		}
	}
	return transaction.Commit()
}

func main() {
	port, database, keyFile, writeKey := os.Args[1], os.Args[2], os.Args[3], os.Args[4]
	// With one thread, no request is read while a commit waits for the disk, and groups stay small.
	if runtime.GOMAXPROCS(0) < 2 {
		runtime.GOMAXPROCS(2)
	}
	pem, err := os.ReadFile(keyFile)
	check(err)
	key, err := jwt.ParseRSAPublicKeyFromPEM(pem)
	check(err)
	db, err := sql.Open("sqlite3", "file:"+database+"?_journal_mode=WAL&_synchronous=FULL&_txlock=immediate")
	check(err)
	db.SetMaxOpenConns(1)
	_, err = db.Exec(schema)
	check(err)
	insert, err := db.Prepare(insertion)
	check(err)
	s := &server{writeKey: writeKey, verifier: verifier{key: key}, requests: make(chan request, 4*maxGroup)}
	s.verifier.newer = make(map[string]identity)
	go s.write(db, insert)
	log.Fatal(http.ListenAndServe("127.0.0.1:"+port, s))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
