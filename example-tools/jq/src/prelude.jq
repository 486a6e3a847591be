# What jq has and the library lacks, and what a sandboxed filter sees of the world around it: nothing.

def toarray: if isarray then . else [.] end;
def trimstr($x): ltrimstr($x) | rtrimstr($x);
def ascii: [.] | implode;
def todate(format): strftime(format);
# A row for @csv and @tsv: f writes a string, everything else writes itself.
def _row(f; $format): .[] |
  if isstring then f
  elif isarray or isobject then error("\(type) cannot be a field of a \($format) row")
  elif . == null then ""
  else tostring end;
def _replaced($old; $new): split($old) | join($new);
def @csv: [_row("\"" + _replaced("\""; "\"\"") + "\""; "CSV")] | join(",");
def @tsv: [_row(
    _replaced("\\"; "\\\\") | _replaced("\t"; "\\t") | _replaced("\n"; "\\n") | _replaced("\r"; "\\r"); "TSV"
  )] | join("\t");

def env: {};
def inputs: empty;
def input: error("no more inputs: there is one, and `.` holds it");
def now: error("there is no clock here: pass the time as a variable");
def localtime: gmtime;
def strflocaltime(format): strftime(format);
def halt_error: error;
def halt_error($exit_code): error;
