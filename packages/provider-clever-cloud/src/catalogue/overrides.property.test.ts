/** Files made by rules of their own: what is wrong with each, and on which line, is known before it is read. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { silentLogger } from '@tenon/runtime'
import * as fc from 'fast-check'
import { Catalogue } from './catalogue.ts'
import { readOverrides } from './overrides.ts'

interface Line {
  readonly text: string
  readonly isWrong: boolean
}

interface Entry {
  readonly name: string
  readonly lines: readonly Line[]
  readonly isKnown: boolean
}

const right = (text: string): Line => ({ text, isWrong: false })
const wrong = (text: string): Line => ({ text, isWrong: true })
const knownNames = ['2XS', 'XS', 'S', 'M', 'L', 'XL']
const otherNames = ['3XL', 'GPU', 'CUSTOM', 'A', '"8"']

const cpuLine = fc.integer({ min: 1, max: 1024 }).map((cpu) => right(`cpu: ${cpu}`))
const memoryLine = fc.integer({ min: 102_401, max: 2 ** 30 }).map((memory) => right(`memoryKi: ${memory}`))
const priceLine = fc
  .double({ min: 0, max: 1e9, noNaN: true })
  .map((price) => right(`priceHourly: ${price.toFixed(6)}`))
const wrongLine = fc.oneof(
  fc.constantFrom('cpu: 0', 'cpu: -1', 'cpu: 2.5', 'cpu: "4"', 'cpu:', 'cpu: .nan', 'cpu: 1e400', 'cpu: [4]'),
  fc.constantFrom('memoryKi: 0', 'memoryKi: 100000', 'memoryKi: 1e12', 'memoryKi: 4Gi', 'memoryKi: ~'),
  fc.constantFrom('priceHourly: -1', 'priceHourly: .inf', 'priceHourly: 2e9', 'priceHourly: cheap'),
  fc.constantFrom('price: 1', '__proto__: 1', 'Name: M', 'toString: 1', 'arch: arm64'),
)

/** An entry with all of its lines right; `name` comes first or last. */
const rightEntry: fc.Arbitrary<Entry> = fc
  .record({
    isKnown: fc.boolean(),
    known: fc.constantFrom(...knownNames),
    other: fc.constantFrom(...otherNames),
    cpu: fc.option(cpuLine),
    memory: fc.option(memoryLine),
    price: fc.option(priceLine),
    sizes: fc.tuple(cpuLine, memoryLine),
    isNameLast: fc.boolean(),
  })
  .map(({ isKnown, known, other, cpu, memory, price, sizes, isNameLast }) => {
    const name = isKnown ? known : other
    const size = isKnown ? [cpu, memory].filter((line) => line !== null) : sizes
    const rest = [...size, ...(price === null ? [] : [price])]
    const nameLine = right(`name: ${name}`)
    return { name, isKnown, lines: isNameLast ? [...rest, nameLine] : [nameLine, ...rest] }
  })

const rightFile = fc.uniqueArray(rightEntry, { selector: ({ name }) => name, minLength: 1, maxLength: 11 })

function rendered(entries: readonly Entry[]): {
  readonly text: string
  readonly wrongLines: readonly number[]
} {
  const lines = entries.flatMap((entry) =>
    entry.lines.map(({ text, isWrong }, index) => ({ text: `${index === 0 ? '-' : ' '} ${text}`, isWrong })),
  )
  return {
    text: lines.map(({ text }) => `${text}\n`).join(''),
    wrongLines: lines.flatMap(({ isWrong }, index) => (isWrong ? [index + 1] : [])),
  }
}

function amount(entry: Entry | undefined, field: string): number | undefined {
  const line = entry?.lines.find(({ text }) => text.startsWith(`${field}: `))
  return line && Number(line.text.slice(field.length + 2))
}

/** What holds of every catalogue, whatever file it was made from. */
function assertSound(catalogue: Catalogue): void {
  const types = catalogue.types()
  assert.equal(new Set(types.map(({ name }) => name)).size, types.length, 'names are unique')
  for (const { name, capacity, overhead, offerings } of types) {
    for (const resource of ['cpu', 'memory', 'ephemeral-storage', 'pods']) {
      const has = capacity[resource] ?? 0
      const kept = [overhead.kubeReserved, overhead.systemReserved, overhead.evictionThreshold]
        .map((each) => each[resource] ?? 0)
        .reduce((sum, each) => sum + each, 0)
      assert.ok(Number.isSafeInteger(has) && has > 0, `${name} has ${resource}`)
      assert.ok(kept >= 0 && kept < has, `${name} has ${resource} left`)
    }
    assert.equal(offerings.length, 1)
    const price = offerings[0]?.pricePerHour
    if (catalogue.priceUnit === '2XS-equivalents')
      assert.ok(price !== undefined && price > 0, `${name} has a price`)
    assert.ok(price === undefined || (price >= 0 && Number.isFinite(price)), `${name} costs ${price}`)
  }
}

function aCatalogue(text: string): Catalogue {
  const { ok, error } = readOverrides(text)
  assert.equal(error, undefined, text)
  return new Catalogue({ region: 'par', overrides: ok ?? [], logger: silentLogger })
}

test('a file without a mistake is taken, with every value where it belongs', () => {
  fc.assert(
    fc.property(rightFile, (entries) => {
      const catalogue = aCatalogue(rendered(entries).text)
      assertSound(catalogue)
      const added = entries.filter(({ isKnown }) => !isKnown).map(({ name }) => name.replaceAll('"', ''))
      assert.deepEqual(
        catalogue.types().map(({ name }) => name),
        [...knownNames, ...added],
      )
      const isPriced = entries.some((entry) => amount(entry, 'priceHourly') !== undefined)
      assert.equal(catalogue.priceUnit, isPriced ? 'EUR' : '2XS-equivalents')
      for (const entry of entries) {
        const type = catalogue.types().find(({ name }) => name === entry.name.replaceAll('"', ''))
        const [cpu, memory, price] = ['cpu', 'memoryKi', 'priceHourly'].map((field) => amount(entry, field))
        if (cpu !== undefined) assert.equal(type?.capacity['cpu'], cpu * 1000)
        if (memory !== undefined) assert.equal(type?.capacity['memory'], memory * 1024)
        if (price !== undefined) assert.equal(type?.offerings[0]?.pricePerHour, price)
        if (price === undefined && isPriced && !entry.isKnown)
          assert.equal(type?.offerings[0]?.pricePerHour, undefined, 'a price that nobody told is not known')
      }
    }),
  )
})

test('one mistake makes the whole file invalid, and the error names its line', () => {
  fc.assert(
    fc.property(rightFile, wrongLine, fc.nat(), fc.nat(), (entries, text, at, within) => {
      const changed = entries.map((entry, index) => {
        if (index !== at % entries.length) return entry
        const field = text.slice(0, text.indexOf(':') + 1)
        const kept = entry.lines.filter((line) => !line.text.startsWith(field))
        const place = within % (kept.length + 1)
        return { ...entry, lines: [...kept.slice(0, place), wrong(text), ...kept.slice(place)] }
      })
      const file = rendered(changed)
      const { error } = readOverrides(file.text)
      assert.ok(error !== undefined, file.text)
      assert.deepEqual([Number(/^line (\d+): /.exec(error)?.[1])], file.wrongLines, `${file.text}\n${error}`)
    }),
  )
})

test('the order of entries decides the order of what they add, and nothing else', () => {
  const shuffledFiles = rightFile.chain((entries) =>
    fc.tuple(fc.constant(entries), fc.shuffledSubarray(entries, { minLength: entries.length })),
  )
  fc.assert(
    fc.property(shuffledFiles, ([entries, others]) => {
      const byName = (catalogue: Catalogue) =>
        catalogue.types().toSorted((a, b) => (a.name < b.name ? -1 : 1))
      assert.deepEqual(byName(aCatalogue(rendered(entries).text)), byName(aCatalogue(rendered(others).text)))
    }),
  )
})

test('whatever a file holds, it is taken or the error names a line of it', () => {
  const piece = fc.oneof(
    fc.string({ maxLength: 8 }),
    fc.constantFrom(
      '\n',
      '- ',
      '  ',
      ': ',
      '{',
      '}',
      '[',
      ']',
      '&a ',
      '*a',
      '!!str ',
      '"',
      "'",
      '#',
      '|\n',
      '>-\n',
    ),
    fc.constantFrom(
      '---\n',
      '...\n',
      '%YAML 1.1\n',
      '\t',
      '\r\n',
      '\uFEFF',
      '\0',
      '? ',
      '<<',
      ', ',
      '\u2028',
    ),
    fc.constantFrom(
      '- name: M\n',
      '  cpu: 4\n',
      '- {name: XL, priceHourly: 0.2}\n',
      '{name: L}',
      'name',
      'M',
      '4',
    ),
  )
  const mutated = fc
    .tuple(rightFile, piece, fc.nat(), fc.nat({ max: 20 }))
    .map(([entries, text, at, cut]) => {
      const file = rendered(entries).text
      const place = at % (file.length + 1)
      return file.slice(0, place) + text + file.slice(place + cut)
    })
  const anyFile = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 60 }),
    fc.array(piece, { maxLength: 30 }).map((pieces) => pieces.join('')),
    mutated,
  )
  fc.assert(
    fc.property(anyFile, (text) => {
      const { ok, error } = readOverrides(text)
      if (ok !== undefined) {
        assert.ok(ok.length > 0)
        assertSound(new Catalogue({ region: 'par', overrides: ok, logger: silentLogger }))
        return
      }
      const line = Number(/^line (\d+): \S[^\n]*$/.exec(error)?.[1])
      assert.ok(line >= 1 && line <= text.split('\n').length, `${JSON.stringify(text)}: ${error}`)
    }),
    { numRuns: 600 },
  )
})
