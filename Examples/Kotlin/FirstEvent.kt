import dev.countersign.CountersignClient

fun main(arguments: Array<String>) {
    // The provider asks your backend, which signs a token for it.userId.
    CountersignClient.Builder("http://127.0.0.1:8787", arguments[0]).tokenProvider { arguments[1] }.build().use { client ->
        client.identify("user-1")
        client.track("Order Completed", mapOf("total" to 42.5)).join()  // on disk: survives a crash
        println(client.flush())
    }
}
