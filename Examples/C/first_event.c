/* The first signed event. Build: cc first_event.c $(pkg-config --cflags --libs countersign) -lpthread; run: ./a.out WRITE_KEY TOKEN */
#include <countersign.h>
#include <semaphore.h>
#include <stdio.h>

static sem_t done;

static void show(void *name, const char *json, size_t length) {
    printf("%s %.*s\n", (const char *)name, (int)length, json);
    sem_post(&done);
}

int main(int count, char **arguments) {
    if (count != 3) {
        fprintf(stderr, "usage: %s WRITE_KEY TOKEN\n", arguments[0]);
        return 2;
    }
    char configuration[1024], user[8192], *error = NULL;
    snprintf(configuration, sizeof configuration, "{\"endpoint\": \"http://127.0.0.1:8787\", \"writeKey\": \"%s\"}", arguments[1]);
    snprintf(user, sizeof user, "{\"userId\": \"user-1\", \"token\": \"%s\"}", arguments[2]);
    sem_init(&done, 0, 0);
    countersign_client *client =
        countersign_open_signed_user(configuration, COUNTERSIGN_NUL_TERMINATED, NULL, NULL, NULL, &error, NULL);
    if (!client) {
        fprintf(stderr, "%s\n", error);
        countersign_free(error);
        return 1;
    }
    countersign_call(client, "identify", 8, user, COUNTERSIGN_NUL_TERMINATED, NULL, NULL);
    const char *event = "{\"event\": \"Order Completed\", \"properties\": {\"total\": 42.5}}";
    countersign_call(client, "track", 5, event, COUNTERSIGN_NUL_TERMINATED, show, "stored");
    countersign_call(client, "flush", 5, NULL, 0, show, "sent");
    for (int answers = 0; answers < 2; answers++) sem_wait(&done);
    countersign_close(client, show, "closed");
    sem_wait(&done);
    return 0;
}
