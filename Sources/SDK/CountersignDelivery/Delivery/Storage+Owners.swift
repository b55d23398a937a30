extension Storage {
    /// Also true if the queue cannot be read, or if it lacks recorded events. Only on the storage thread.
    package func hasEvents(of owner: String) -> Bool {
        let hasEvents = try? withQueue { queue in try queue.hasEvents(of: owner) }
        return hasEvents ?? true || checkpointFailure != nil
    }

    /// False if another process may have events that are not in the queue file yet.
    package var ownsAllLogs: Bool {
        WriteAheadLog.all(in: directory).allSatisfy { $0.id == holder.id }
    }
}
