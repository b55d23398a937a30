/* The first signed event. Build: cc first_event.c $(pkg-config --cflags --libs countersign) -lpthread */
#include <countersign.h>
#include <semaphore.h>
#include <stdio.h>

static sem_t done;

static void show(void *name, const char *json, size_t length) {
    printf("%s %.*s\n", (const char *)name, (int)length, json);
    sem_post(&done);
}

/* configuration: {"endpoint": "https://events.example", "writeKey": "wk_..."}; user: {"userId": "user-1", "token": "eyJ..."} */
int main(int count, char **arguments) {
    if (count != 3) return 2;
    sem_init(&done, 0, 0);
    char *error = NULL;
    countersign_client *client =
        countersign_open_signed_user(arguments[1], COUNTERSIGN_NUL_TERMINATED, NULL, NULL, NULL, &error, NULL);
    if (!client) {
        fprintf(stderr, "%s\n", error);
        countersign_free(error);
        return 1;
    }
    countersign_call(client, "identify", 8, arguments[2], COUNTERSIGN_NUL_TERMINATED, NULL, NULL);
    const char *event = "{\"event\": \"Order Completed\", \"properties\": {\"total\": 42.5}}";
    countersign_call(client, "track", 5, event, COUNTERSIGN_NUL_TERMINATED, show, "stored");
    countersign_call(client, "flush", 5, NULL, 0, show, "sent");
    for (int answers = 0; answers < 2; answers++) sem_wait(&done);
    countersign_close(client, show, "closed");
    sem_wait(&done);
    return 0;
}
