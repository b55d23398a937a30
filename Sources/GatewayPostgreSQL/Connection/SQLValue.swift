internal import CountersignSQLite

typealias SQLValue = SQLiteValue
