package dev.countersign;

import java.lang.reflect.Array;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** JSON (RFC 8259) as maps, lists, strings, Long, Double, Boolean and null. */
final class Json {
    private final String text;
    private int position = 0;

    private Json(String text) {
        this.text = text;
    }

    /** Reads what the library writes: there are no mistakes in it. */
    static Object read(String text) {
        return new Json(text).value();
    }

    static String write(Object value) {
        StringBuilder output = new StringBuilder();
        write(value, output);
        return output.toString();
    }

    private static void write(Object value, StringBuilder output) {
        if (value == null || value instanceof Boolean) {
            output.append(value);
        } else if (value instanceof Number) {
            // JSON has no word for these.
            double number = ((Number) value).doubleValue();
            output.append(Double.isNaN(number) || Double.isInfinite(number) ? "null" : value.toString());
        } else if (value instanceof Map) {
            char separator = '{';
            for (Map.Entry<?, ?> entry : ((Map<?, ?>) value).entrySet()) {
                output.append(separator);
                writeText(String.valueOf(entry.getKey()), output);
                write(entry.getValue(), output.append(':'));
                separator = ',';
            }
            output.append(separator == '{' ? "{}" : "}");
        } else if (value instanceof Collection) {
            char separator = '[';
            for (Object element : (Collection<?>) value) {
                write(element, output.append(separator));
                separator = ',';
            }
            output.append(separator == '[' ? "[]" : "]");
        } else if (value.getClass().isArray()) {
            List<Object> elements = new ArrayList<>();
            for (int index = 0; index < Array.getLength(value); index++) elements.add(Array.get(value, index));
            write(elements, output);
        } else {
            writeText(value.toString(), output);
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
                // Half a pair is no character.
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
        if (word.matches("-?[0-9]{1,18}")) return Long.valueOf(word);
        return Double.valueOf(word);
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
