// Reads and runs the ONNX files that `sfumato export` writes: matrices of doubles, one row per report.
// A file with an operator that is not here is refused when it is read.

const MOST_VALUES = 1 << 24;

class Matrix {
  constructor(rows, columns, data) {
    if (!(rows >= 0 && columns >= 0 && rows * columns <= MOST_VALUES)) throw new Error("a value of the mechanism is larger than expected");
    Object.assign(this, { rows, columns, data: data ?? new Float64Array(rows * columns) });
  }
}

function each(rule) {
  return ([value]) => {
    const out = new Matrix(value.rows, value.columns);
    for (let i = 0; i < out.data.length; i++) out.data[i] = rule(value.data[i]);
    return out;
  };
}

// A rule on corresponding values; a side of one row or one column is repeated.
function wide(rule) {
  return (inputs) => {
    const rows = Math.max(...inputs.map((input) => input.rows));
    const columns = Math.max(...inputs.map((input) => input.columns));
    for (const input of inputs) {
      if (![1, rows].includes(input.rows) || ![1, columns].includes(input.columns)) throw new Error("values of the mechanism do not fit");
    }
    const out = new Matrix(rows, columns);
    const [a, b, c] = inputs;
    const step = inputs.map((input) => (input.columns === 1 ? 0 : 1));
    const line = inputs.map((input) => (input.rows === 1 ? 0 : input.columns));
    for (let i = 0, k = 0; i < rows; i++) {
      let p = i * line[0], q = i * line[1], r = c ? i * line[2] : 0;
      for (let j = 0; j < columns; j++, k++, p += step[0], q += step[1]) {
        out.data[k] = c ? rule(a.data[p], b.data[q], c.data[r]) : rule(a.data[p], b.data[q]);
        if (c) r += step[2];
      }
    }
    return out;
  };
}

function matMul([a, b]) {
  if (a.columns !== b.rows) throw new Error("values of the mechanism do not fit");
  const out = new Matrix(a.rows, b.columns);
  for (let i = 0; i < a.rows; i++) {
    for (let k = 0; k < a.columns; k++) {
      const factor = a.data[i * a.columns + k];
      if (factor === 0) continue;
      for (let j = 0, p = k * b.columns, q = i * b.columns; j < b.columns; j++, p++, q++) out.data[q] += factor * b.data[p];
    }
  }
  return out;
}

function gather([from, index], { axis = 0 }) {
  const count = axis === 0 ? from.rows : from.columns;
  for (const place of index.data) if (!(place >= 0 && place < count)) throw new Error("an index of the mechanism is out of range");
  const picked = index.data.length;
  const out = axis === 0 ? new Matrix(picked, from.columns) : new Matrix(from.rows, picked);
  for (let i = 0; i < out.rows; i++) {
    for (let j = 0; j < out.columns; j++) {
      const row = axis === 0 ? index.data[i] : i, column = axis === 0 ? j : index.data[j];
      out.data[i * out.columns + j] = from.data[row * from.columns + column];
    }
  }
  return out;
}

function concat(inputs, { axis }) {
  if (axis !== 1) throw new Error("a mechanism joins columns, not rows");
  const rows = Math.max(...inputs.map((input) => input.rows));
  const out = new Matrix(rows, inputs.reduce((sum, input) => sum + input.columns, 0));
  let start = 0;
  for (const input of inputs) {
    for (let i = 0; i < rows; i++) {
      for (let j = 0; j < input.columns; j++) {
        out.data[i * out.columns + start + j] = input.data[(input.rows === 1 ? 0 : i) * input.columns + j];
      }
    }
    start += input.columns;
  }
  return out;
}

// Folds each row to one value.
function fold(start, rule) {
  return ([value]) => {
    const out = new Matrix(value.rows, 1);
    for (let i = 0; i < value.rows; i++) {
      let found = start;
      for (let j = 0; j < value.columns; j++) found = rule(found, value.data[i * value.columns + j]);
      out.data[i] = found;
    }
    return out;
  };
}

function argMin([value]) {
  const out = new Matrix(value.rows, 1);
  for (let i = 0; i < value.rows; i++) {
    let best = 0;
    for (let j = 1; j < value.columns; j++) {
      if (value.data[i * value.columns + j] < value.data[i * value.columns + best]) best = j;
    }
    out.data[i] = best;
  }
  return out;
}

function cumSum([value]) {
  const out = new Matrix(value.rows, value.columns);
  for (let i = 0, k = 0; i < value.rows; i++) {
    let sum = 0;
    for (let j = 0; j < value.columns; j++, k++) out.data[k] = sum += value.data[k];
  }
  return out;
}

const OPERATORS = {
  Add: wide((a, b) => a + b),
  Sub: wide((a, b) => a - b),
  Mul: wide((a, b) => a * b),
  Div: wide((a, b) => a / b),
  Min: wide(Math.min),
  Max: wide(Math.max),
  Less: wide((a, b) => (a < b ? 1 : 0)),
  LessOrEqual: wide((a, b) => (a <= b ? 1 : 0)),
  Where: wide((condition, a, b) => (condition ? a : b)),
  Neg: each((a) => -a),
  Exp: each(Math.exp),
  Log: each(Math.log),
  Sqrt: each(Math.sqrt),
  Sin: each(Math.sin),
  Cos: each(Math.cos),
  Floor: each(Math.floor),
  Relu: each((a) => (a > 0 ? a : 0)),
  Cast: ([value]) => value,
  Identity: ([value]) => value,
  MatMul: matMul,
  Gather: gather,
  Concat: concat,
  ReduceSum: fold(0, (a, b) => a + b),
  ReduceMax: fold(-Infinity, Math.max),
  ReduceMin: fold(Infinity, Math.min),
  ArgMin: argMin,
  CumSum: cumSum,
};

// The protobuf wire format: fields of whole numbers and of bytes.
function* fields(bytes) {
  let at = 0;
  const varint = () => {
    let value = 0n, shift = 0n;
    for (;;) {
      if (at >= bytes.length || shift > 63n) throw new Error("the mechanism's file is damaged");
      const byte = bytes[at++];
      value |= BigInt(byte & 127) << shift;
      if (byte < 128) return Number(BigInt.asIntN(64, value));
      shift += 7n;
    }
  };
  while (at < bytes.length) {
    const tag = varint();
    if ((tag & 7) === 0) yield [tag >> 3, varint()];
    else if ((tag & 7) === 2) {
      const length = varint();
      if (!(length >= 0 && at + length <= bytes.length)) throw new Error("the mechanism's file is damaged");
      yield [tag >> 3, bytes.subarray(at, (at += length))];
    } else throw new Error("the mechanism's file is damaged");
  }
}

const text = (bytes) => new TextDecoder().decode(bytes);
const pick = (bytes, wanted) => [...fields(bytes)].filter(([field]) => field === wanted).map(([, value]) => value);

function constant(bytes) {
  const shape = pick(bytes, 1);
  const [type] = pick(bytes, 2), [name] = pick(bytes, 8).map(text), [raw] = pick(bytes, 9);
  const view = new DataView(raw.buffer, raw.byteOffset, raw.byteLength);
  const readers = { 1: [4, (i) => view.getFloat32(i, true)], 7: [8, (i) => Number(view.getBigInt64(i, true))], 11: [8, (i) => view.getFloat64(i, true)] };
  if (!(type in readers) || shape.length > 2) throw new Error("the mechanism's file holds a constant of an unknown kind");
  const [size, read] = readers[type];
  const [columns = 1, rows = 1] = shape.slice().reverse();
  if (raw.byteLength !== rows * columns * size) throw new Error("the mechanism's file is damaged");
  const value = new Matrix(rows, columns);
  for (let i = 0; i < value.data.length; i++) value.data[i] = read(i * size);
  return [name, value];
}

function node(bytes) {
  const attributes = Object.fromEntries(pick(bytes, 5).map((item) => [text(pick(item, 1)[0]), pick(item, 3)[0]]));
  const operator = text(pick(bytes, 4)[0]);
  if (!Object.hasOwn(OPERATORS, operator)) throw new Error(`the mechanism needs the operator ${operator}, which this module does not know`);
  return { run: OPERATORS[operator], inputs: pick(bytes, 1).map(text), output: text(pick(bytes, 2)[0]), attributes };
}

// From the bytes of a file to a function of rows of truths and rows of numbers on [0, 1).
export function readMechanism(bytes) {
  const [graph] = pick(bytes, 7);
  if (!graph) throw new Error("the mechanism's file is damaged");
  const known = new Map(pick(graph, 5).map(constant));
  const nodes = [];
  for (const step of pick(graph, 1).map(node)) {
    if (step.inputs.every((name) => known.has(name))) known.set(step.output, step.run(step.inputs.map((name) => known.get(name)), step.attributes));
    else nodes.push(step); // what rests on constants alone is worked out once, here
  }
  return (truths, chances) => {
    const values = new Map(known);
    values.set("truth", new Matrix(truths.length, 2, Float64Array.from(truths.flat())));
    values.set("chance", new Matrix(chances.length, chances[0]?.length ?? 0, Float64Array.from(chances.flat())));
    for (const step of nodes) {
      const inputs = step.inputs.map((name) => {
        if (!values.has(name)) throw new Error("the mechanism's file is damaged");
        return values.get(name);
      });
      values.set(step.output, step.run(inputs, step.attributes));
    }
    const { data } = values.get("report");
    return truths.map((_, row) => {
      const fixed = data.length === 2 ? 0 : row; // a mechanism that never looks at the truth gives one row
      return [data[fixed * 2], data[fixed * 2 + 1]];
    });
  };
}
