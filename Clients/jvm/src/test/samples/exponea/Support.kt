package exponea

import java.util.concurrent.CountDownLatch
import java.util.concurrent.atomic.AtomicInteger
import kotlin.coroutines.Continuation
import kotlin.coroutines.CoroutineContext
import kotlin.coroutines.EmptyCoroutineContext
import kotlin.coroutines.startCoroutine

/** Replaces runBlocking of kotlinx.coroutines, which Debian does not package. */
fun <T> runBlocking(block: suspend () -> T): T {
    val done = CountDownLatch(1)
    var value: T? = null
    var failure: Throwable? = null
    block.startCoroutine(object : Continuation<T> {
        override val context: CoroutineContext get() = EmptyCoroutineContext
        override fun resumeWith(result: Result<T>) {
            result.onSuccess { value = it }.onFailure { failure = it }
            done.countDown()
        }
    })
    done.await()
    failure?.let { throw it }
    @Suppress("UNCHECKED_CAST") return value as T
}

/** A stand-in for the app's backend, which counts its calls. */
object Backend {
    private val count = AtomicInteger()
    val calls: Int get() = count.get()

    fun token(): String {
        count.incrementAndGet()
        return System.getenv("STAND_CUSTOMER")
    }
}

fun retrieveTokenAsync(success: (String) -> Unit, error: (Exception) -> Unit) {
    Thread {
        try {
            success(Backend.token())
        } catch (failure: Exception) {
            error(failure)
        }
    }.start()
}
