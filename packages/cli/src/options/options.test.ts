import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { test } from 'node:test'
import { flagValue } from '@tenon/api/flags'
import { defaultSettings } from '@tenon/operator'
import { CliError } from '../errors.ts'
import { builtInProviders } from '../providers.ts'
import { gateDefinitions, optionDefinitionsOf } from './definitions.ts'
import { controllerHelp, optionsPage } from './help.ts'
import { parseArguments } from './read.ts'

const optionDefinitions = optionDefinitionsOf(builtInProviders)

function given(...args: readonly string[]): Readonly<Record<string, string>> | 'help' {
  const parsed = parseArguments(args, optionDefinitions)
  return parsed === 'help' ? parsed : Object.fromEntries(parsed)
}

function complaint(...args: readonly string[]): string {
  try {
    given(...args)
  } catch (error) {
    if (error instanceof CliError && error.exitCode === 2) return error.message
    throw error
  }
  return 'none'
}

test('one dash or two, a value after = or a space, the last one is used', () => {
  assert.deepEqual(given('-metrics-port=1', '--log-level', 'debug', '-metrics-port', '2'), {
    'metrics-port': '2',
    'log-level': 'debug',
  })
  assert.deepEqual(given('--scheduler-config=a=b', '--log-level='), {
    'scheduler-config': 'a=b',
    'log-level': '',
  })
  assert.deepEqual(given('--metrics-port', '-5'), { 'metrics-port': '-5' })
})

test('a boolean alone is true and takes nothing from what follows', () => {
  assert.deepEqual(given('--enable-profiling', '--metrics-port', '1'), {
    'enable-profiling': 'true',
    'metrics-port': '1',
  })
  assert.deepEqual(given('-enable-profiling=false'), { 'enable-profiling': 'false' })
  assert.equal(
    complaint('--enable-profiling', 'true', '--metrics-port=1'),
    '"true" is not an option: write --enable-profiling=true',
  )
})

test('help is asked for in four ways', () => {
  for (const flag of ['-h', '--h', '-help', '--help']) assert.equal(given('--metrics-port=1', flag), 'help')
})

test('what is no option ends the start, with what was meant', () => {
  assert.equal(
    complaint('--metric-port=1'),
    'unknown option --metric-port, did you mean --metrics-port? (see --help)',
  )
  assert.equal(complaint('--nothing-like-it'), 'unknown option --nothing-like-it (see --help)')
  assert.equal(complaint('controller'), '"controller" is not an option: options begin with --')
  assert.equal(complaint('--'), '"--" is not an option: options begin with --')
  assert.equal(complaint('--log-level'), '--log-level needs a value: --log-level=LEVEL')
  assert.equal(
    complaint('--leader-elect=false'),
    '--leader-elect is no longer an option: use disable-leader-election instead',
  )
})

test('whole numbers of flags may have a base, those of variables may not', () => {
  const port = optionDefinitions.find(({ flag }) => flag === 'metrics-port')
  assert.ok(port !== undefined)
  const cases: readonly (readonly [string, number | undefined, number | undefined])[] = [
    ['8080', 8080, 8080],
    ['0x1F90', 8080, undefined],
    ['0b11', 3, undefined],
    ['0o17', 15, undefined],
    ['017', 15, 17],
    ['-0x10', -16, undefined],
    ['+5', 5, 5],
    ['0', 0, 0],
    ['', undefined, undefined],
    ['1.5', undefined, undefined],
    ['8080 ', undefined, undefined],
    ['99999999999999999999', undefined, undefined],
  ]
  for (const [text, flag, variable] of cases)
    assert.deepEqual([flagValue(port, text, 'karpenterFlag'), flagValue(port, text)], [flag, variable], text)
})

test('each default can be read, and each gate is a setting with the same default', () => {
  for (const definition of optionDefinitions)
    if (definition.fallback !== '')
      assert.notEqual(flagValue(definition, definition.fallback), undefined, definition.flag)
  const served = gateDefinitions
  assert.deepEqual(
    Object.fromEntries(
      served.map(({ name, fallback }) => [name[0]?.toLowerCase() + name.slice(1), fallback]),
    ),
    defaultSettings.featureGates,
  )
})

test('help names every option with its variable and default', () => {
  const help = controllerHelp(builtInProviders)
  for (const { flag, variable, fallback } of optionDefinitions) {
    const line = help.split('\n').find((each) => new RegExp(`^  --${flag}(?![-\\w])`).test(each)) ?? ''
    assert.ok(variable === undefined || line.includes(variable), flag)
    assert.ok(fallback === '' || line.includes(`default ${fallback}`), flag)
  }
})

test('docs/options.md says what the definitions say; TENON_WRITE_DOCS=1 writes it', () => {
  const file = new URL('../../../../docs/options.md', import.meta.url)
  if (process.env['TENON_WRITE_DOCS'] === '1') writeFileSync(file, optionsPage(builtInProviders))
  assert.equal(readFileSync(file, 'utf8'), optionsPage(builtInProviders))
})
