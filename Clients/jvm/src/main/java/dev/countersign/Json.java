package dev.countersign;

import java.lang.reflect.Array;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.net.URI;
import java.net.URL;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.time.ZonedDateTime;
import java.time.format.DateTimeFormatter;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Calendar;
import java.util.Collection;
import java.util.Date;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.UUID;
import java.util.function.Consumer;
import java.util.function.Function;

/** JSON (RFC 8259) as maps, lists, strings, Long (BigInteger beyond 64 bits), Double, Boolean and null. */
final class Json {
    private final String text;
    private int position = 0;

    private Json(String text) {
        this.text = text;
    }

    /** Reads the library's output, which is always well-formed. */
    static Object read(String text) {
        return new Json(text).value();
    }

    /**
     * Returns the JSON of any value, by the table in docs/reference/event-format.md. Catches exceptions of the
     * app's classes. {@code report} gets each class that is not supported.
     */
    static String write(Object value, Consumer<Class<?>> report) {
        Writer writer = new Writer(report);
        return writer.write(value) ? writer.output.toString() : "null";
    }

    /** Functions that return the value of an optional, or null if it is empty. */
    private static final Map<Class<?>, Function<Object, Object>> unwrapped = Map.of(
        Optional.class, value -> ((Optional<?>) value).orElse(null),
        OptionalInt.class, value -> ((OptionalInt) value).isPresent() ? ((OptionalInt) value).getAsInt() : null,
        OptionalLong.class, value -> ((OptionalLong) value).isPresent() ? ((OptionalLong) value).getAsLong() : null,
        OptionalDouble.class, value -> ((OptionalDouble) value).isPresent() ? ((OptionalDouble) value).getAsDouble() : null);

    private static final BigInteger least = BigInteger.valueOf(Long.MIN_VALUE);
    private static final BigInteger greatest = BigInteger.valueOf(Long.MAX_VALUE);
    private static final DateTimeFormatter instants =
        DateTimeFormatter.ofPattern("uuuu-MM-dd'T'HH:mm:ss.SSS'Z'").withZone(ZoneOffset.UTC);

    private static final class Writer {
        // Bounds the recursion. The library keeps 60 levels, and replaces deeper values by null.
        private static final int maximumLevels = 80;

        private final StringBuilder output = new StringBuilder();
        private final Consumer<Class<?>> report;
        /** The objects that contain the current value, to detect cycles. */
        private final List<Object> path = new ArrayList<>();
        // An event with more values is too large for a gateway.
        private int room = 100_000;

        Writer(Consumer<Class<?>> report) {
            this.report = report;
        }

        /** Writes a value. Returns false, and writes nothing, if the value's class is not supported. */
        boolean write(Object value) {
            int start = output.length();
            boolean isAround = path.stream().anyMatch(outer -> outer == value);
            if (--room < 0 || path.size() >= maximumLevels || isAround) {
                output.append("null");
                return true;
            }
            path.add(value);
            try {
                return writeAny(value);
            } catch (Throwable failure) {
                // An error of the JVM, such as OutOfMemoryError, must not be hidden.
                if (failure instanceof VirtualMachineError && !(failure instanceof StackOverflowError)) throw failure;
                // Thrown by the app's code, such as an iterator. Record the event anyway. Kotlin's code also throws
                // checked exceptions, and an error for TODO().
                output.setLength(start);
                output.append("null");
                return true;
            } finally {
                path.remove(path.size() - 1);
            }
        }

        private boolean writeAny(Object value) {
            if (value == null || value instanceof Boolean) {
                output.append(value);
            } else if (value instanceof Number) {
                writeNumber((Number) value);
            } else if (value.getClass().getName().matches("kotlin\\.U(Byte|Short|Int|Long)")) {
                writeInteger(new BigInteger(value.toString()));
            } else if (unwrapped.containsKey(value.getClass())) {
                return write(unwrapped.get(value.getClass()).apply(value));
            } else if (value instanceof Map) {
                writeMap((Map<?, ?>) value);
            } else if (value instanceof Collection) {
                writeElements(((Collection<?>) value).iterator());
            } else if (value instanceof byte[]) {
                writeText(Base64.getEncoder().encodeToString((byte[]) value), output);
            } else if (value instanceof char[]) {
                writeText(new String((char[]) value), output);
            } else if (value.getClass().isArray()) {
                List<Object> elements = new ArrayList<>();
                for (int index = 0; index < Math.min(Array.getLength(value), room + 1); index++) elements.add(Array.get(value, index));
                writeElements(elements.iterator());
            } else {
                String text = text(value);
                if (text != null) {
                    writeText(text, output);
                } else if (instant(value) != null) {
                    writeInstant(instant(value));
                } else {
                    report.accept(value.getClass());
                    return false;
                }
            }
            return true;
        }

        private void writeNumber(Number value) {
            if (value instanceof Double || value instanceof Float) {
                double number = value.doubleValue();
                // JSON has no NaN and no infinity. A float's text has fewer digits than the text of an equal double.
                output.append(Double.isNaN(number) || Double.isInfinite(number) ? "null" : value.toString());
            } else if (value instanceof Long || value instanceof Integer || value instanceof Short || value instanceof Byte) {
                output.append(value);
            } else if (value instanceof BigDecimal) {
                writeDecimal((BigDecimal) value);
            } else if (value instanceof BigInteger) {
                writeInteger((BigInteger) value);
            } else {
                // Such as AtomicLong. The text of any other Number class is read as a decimal number.
                writeDecimal(new BigDecimal(value.toString()));
            }
        }

        private void writeInteger(BigInteger value) {
            boolean isNumber = value.compareTo(least) >= 0 && value.compareTo(greatest) <= 0;
            if (isNumber) output.append(value); else writeText(value.toString(), output);
        }

        /** Writes a number if a Long or a Double has the same value, or else a string with all digits. */
        private void writeDecimal(BigDecimal value) {
            // 1E+1000000 is not written out with a million zeros.
            boolean isShort = Math.abs((long) value.precision() - value.scale()) < 400;
            double number = value.doubleValue();
            if (isShort && (value.signum() == 0 || value.stripTrailingZeros().scale() <= 0)) {
                writeInteger(value.toBigInteger());
            } else if (!Double.isInfinite(number) && new BigDecimal(Double.toString(number)).compareTo(value) == 0) {
                output.append(number);
            } else {
                writeText(isShort ? value.toPlainString() : value.toString(), output);
            }
        }

        private void writeMap(Map<?, ?> map) {
            // Two keys may have the same text. The last one is written.
            Map<String, Object> members = new LinkedHashMap<>();
            for (Map.Entry<?, ?> entry : map.entrySet()) {
                if (members.size() > room) break;
                members.put(name(entry.getKey()), entry.getValue());
            }
            output.append('{');
            boolean isFirst = true;
            for (Map.Entry<String, Object> entry : members.entrySet()) {
                int start = output.length();
                if (!isFirst) output.append(',');
                writeText(entry.getKey(), output);
                output.append(':');
                if (write(entry.getValue())) isFirst = false; else output.setLength(start);
            }
            output.append('}');
        }

        private void writeElements(Iterator<?> elements) {
            output.append('[');
            for (boolean isFirst = true; elements.hasNext() && room > 0; isFirst = false) {
                if (!isFirst) output.append(',');
                if (!write(elements.next())) output.append("null");
            }
            output.append(']');
        }

        private void writeInstant(Instant instant) {
            int year = instant.atOffset(ZoneOffset.UTC).getYear();
            output.append(year < 0 || year > 9999 ? "null" : '"' + instants.format(instant) + '"');
        }

        private static String name(Object key) {
            if (key == null) return "null";
            if (unwrapped.containsKey(key.getClass())) return name(unwrapped.get(key.getClass()).apply(key));
            if (key instanceof byte[]) return Base64.getEncoder().encodeToString((byte[]) key);
            Instant instant = instant(key);
            if (instant != null) return instants.format(instant);
            String text = text(key);
            return text != null ? text : String.valueOf(key);
        }

        /** Returns the text of a value whose class is sent as a string; null for other classes. */
        private static String text(Object value) {
            if (value instanceof Enum) return ((Enum<?>) value).name();
            boolean isText = value instanceof CharSequence || value instanceof Character || value instanceof UUID || value instanceof URI
                || value instanceof URL || value instanceof LocalDate || value instanceof LocalTime || value instanceof LocalDateTime;
            return isText ? value.toString() : null;
        }

        private static Instant instant(Object value) {
            if (value instanceof Date) return Instant.ofEpochMilli(((Date) value).getTime());
            if (value instanceof Calendar) return ((Calendar) value).toInstant();
            if (value instanceof Instant) return (Instant) value;
            if (value instanceof OffsetDateTime) return ((OffsetDateTime) value).toInstant();
            if (value instanceof ZonedDateTime) return ((ZonedDateTime) value).toInstant();
            return null;
        }
    }

    private static void writeText(String text, StringBuilder output) {
        output.append('"');
        for (int index = 0; index < text.length(); index++) {
            char unit = text.charAt(index);
            if (unit == '"' || unit == '\\') {
                output.append('\\').append(unit);
            } else if (unit < 0x20) {
                output.append(String.format("\\u%04x", (int) unit));
            } else if (Character.isSurrogate(unit)) {
                boolean isPair = Character.isHighSurrogate(unit) && index + 1 < text.length()
                    && Character.isLowSurrogate(text.charAt(index + 1));
                // UTF-8 cannot encode an unpaired surrogate.
                if (isPair) output.append(unit).append(text.charAt(++index)); else output.append('\ufffd');
            } else {
                output.append(unit);
            }
        }
        output.append('"');
    }

    private Object value() {
        switch (text.charAt(position)) {
            case '{': {
                Map<String, Object> members = new LinkedHashMap<>();
                position++;
                while (text.charAt(position) != '}') {
                    if (text.charAt(position) == ',') position++;
                    String name = string();
                    position++;
                    members.put(name, value());
                }
                position++;
                return members;
            }
            case '[': {
                List<Object> elements = new ArrayList<>();
                position++;
                while (text.charAt(position) != ']') {
                    if (text.charAt(position) == ',') position++;
                    elements.add(value());
                }
                position++;
                return elements;
            }
            case '"': return string();
            case 't': position += 4; return true;
            case 'f': position += 5; return false;
            case 'n': position += 4; return null;
            default: return number();
        }
    }

    private Number number() {
        int start = position;
        while (position < text.length() && "+-.eE0123456789".indexOf(text.charAt(position)) >= 0) position++;
        String word = text.substring(start, position);
        if (!word.matches("-?[0-9]+")) return Double.valueOf(word);
        BigInteger integer = new BigInteger(word);
        return integer.bitLength() < 64 ? (Number) integer.longValue() : integer;
    }

    private String string() {
        StringBuilder result = new StringBuilder();
        for (position++; text.charAt(position) != '"'; position++) {
            char unit = text.charAt(position);
            if (unit != '\\') {
                result.append(unit);
                continue;
            }
            unit = text.charAt(++position);
            switch (unit) {
                case 'n': result.append('\n'); break;
                case 't': result.append('\t'); break;
                case 'r': result.append('\r'); break;
                case 'b': result.append('\b'); break;
                case 'f': result.append('\f'); break;
                case 'u':
                    result.append((char) Integer.parseInt(text.substring(position + 1, position + 5), 16));
                    position += 4;
                    break;
                default: result.append(unit);
            }
        }
        position++;
        return result.toString();
    }
}
