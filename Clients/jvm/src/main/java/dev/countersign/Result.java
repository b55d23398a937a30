package dev.countersign;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** The result of a call or of a dependent function. On the thread that hands over results of the same client, waiting for it throws. */
final class Result<Value> extends CompletableFuture<Value> {
    private final Client client;

    Result(Client client) {
        this.client = client;
    }

    /** Completes the future. Dependent functions run meanwhile, and must not wait. */
    void hand(Value value, Throwable failure) {
        Client outer = Native.handing.get();
        Native.handing.set(client);
        try {
            if (failure == null) complete(value); else completeExceptionally(failure);
        } finally {
            Native.handing.set(outer);
        }
    }

    @Override
    public <Other> CompletableFuture<Other> newIncompleteFuture() {
        return new Result<>(client);
    }

    @Override
    public Value join() {
        if (!isDone()) client.refuseToWait();
        return super.join();
    }

    @Override
    public Value get() throws InterruptedException, ExecutionException {
        if (!isDone()) client.refuseToWait();
        return super.get();
    }

    @Override
    public Value get(long timeout, TimeUnit unit) throws InterruptedException, ExecutionException, TimeoutException {
        if (!isDone()) client.refuseToWait();
        return super.get(timeout, unit);
    }
}
