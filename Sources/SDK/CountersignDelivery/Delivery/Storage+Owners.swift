extension Storage {
    /// Also true if the queue cannot be read, or if it lacks recorded events. Only on the storage thread.
    package func hasEvents(of owner: String) -> Bool {
        let hasEvents = try? withQueue { queue in try queue.hasEvents(of: owner) }
        return hasEvents ?? true || checkpointFailure != nil
    }

    /// The users with events. Throws if some events may not be in the queue file yet. Only on the storage thread.
    package func owners() throws -> [String] {
        let owners = try withQueue { queue in try queue.owners() }
        guard ownsAllLogs, checkpointFailure == nil else {
            throw CountersignError(.notStored, "some events are not in the queue file yet")
        }
        return owners
    }

    /// False if another process may have events that are not in the queue file yet.
    package var ownsAllLogs: Bool {
        (try? WriteAheadLog.all(in: directory).allSatisfy { $0.id == holder.id }) ?? false
    }
}
