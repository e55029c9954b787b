import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { KubeObject } from '@tenon/api'
import { parse } from 'yaml'
import { CliError, KubectlError } from '../errors.ts'
import { paintFor } from './color.ts'
import { kindNamed, nodePoolKind, notFound, qualifiedName } from './kinds.ts'
import { formatOf, type ObjectFormat } from './output/format.ts'
import { printObjects } from './output/objects.ts'
import { sortedBy } from './output/sort.ts'
import { tableLines, TableWriter } from './output/table.ts'
import { fieldMatch, labelSelectorOf } from './selectors.ts'
import { targetsOf } from './targets.ts'

test('EXP-29 a type has all its names, and an unknown one is told in the words of kubectl', () => {
  for (const name of [
    'nodepool',
    'nodepools',
    'NodePool',
    'nodepools.karpenter.sh',
    'nodepools.v1.karpenter.sh',
  ])
    assert.equal(kindNamed(name), nodePoolKind)
  assert.equal(kindNamed('po').type.plural, 'pods')
  assert.equal(kindNamed('no').type.plural, 'nodes')
  assert.throws(() => kindNamed('widgets'), {
    message: `error: the server doesn't have a resource type "widgets"`,
  })
  const error = notFound(nodePoolKind, 'x')
  assert.equal(error.line, 'Error from server (NotFound): nodepools.karpenter.sh "x" not found')
  assert.equal(error.exitCode, 1)
  assert.equal(qualifiedName(nodePoolKind, 'x'), 'nodepool.karpenter.sh/x')
  assert.equal(new CliError('x').line, 'error: x')
})

test('TYPE, TYPE NAME… and TYPE/NAME… are read, mixtures are refused', () => {
  const names = (...args: readonly string[]) => {
    const targets = targetsOf(args)
    return targets.kind === 'all'
      ? targets.kinds.map(({ singular }) => singular)
      : targets.targets.map(({ kind, name }) => `${kind.singular}/${name}`)
  }
  assert.deepEqual(names('nodes'), ['node'])
  assert.deepEqual(names('nodes,po'), ['node', 'pod'])
  assert.deepEqual(names('no', 'a', 'b'), ['node/a', 'node/b'])
  assert.deepEqual(names('no/a', 'nodepool/b'), ['node/a', 'nodepool/b'])
  for (const args of [[], ['no/a', 'b'], ['no/'], ['/a'], ['no/a/b'], ['what', 'x'], ['what/x']])
    assert.throws(() => targetsOf(args), KubectlError, args.join(' '))
  assert.throws(() => targetsOf(['pod', 'a'], { selector: 'x=y' }), /selector/)
  assert.throws(() => targetsOf(['pod', 'a'], { allNamespaces: true }), /across all namespaces/)
  assert.equal(targetsOf(['node', 'a'], { allNamespaces: true }).kind, 'named')
})

test('selectors are read as kubectl reads them', () => {
  assert.deepEqual(labelSelectorOf('a=b,!k').matchExpressions, [
    { key: 'a', operator: 'In', values: ['b'] },
    { key: 'k', operator: 'DoesNotExist' },
  ])
  assert.throws(() => labelSelectorOf('a in b'), /"a in b"/)
  const pod: KubeObject = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'a', namespace: 'x' } }
  assert.equal(fieldMatch('metadata.name=a,metadata.namespace!=y')(pod), true)
  assert.equal(fieldMatch('spec.nodeName=')(pod), true)
  assert.equal(fieldMatch('metadata.name!=a')(pod), false)
  assert.throws(() => fieldMatch('name'), /invalid field selector/)
})

test('a format that kubectl has and tenon has not is refused by its name', () => {
  for (const format of [
    'go-template={{.x}}',
    'go-template-file=f',
    'template',
    'custom-columns-file=f',
    'jsonpath-as-json={.x}',
  ])
    assert.throws(
      () => formatOf(format),
      (error: Error) => error.message.includes(format.split('=')[0] ?? '-'),
    )
  for (const format of [
    'xml',
    'jsonpath',
    'jsonpath=',
    'jsonpath={',
    'custom-columns=',
    'custom-columns=NAME',
    'custom-columns=:x',
  ])
    assert.throws(() => formatOf(format), KubectlError, format)
  assert.deepEqual(formatOf(undefined), { kind: 'plain', isWide: false })
  assert.deepEqual(formatOf('wide'), { kind: 'plain', isWide: true })
})

const object = (name: string, more: object = {}): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, namespace: 'shop', ...more },
})

function printed(output: string, objects: readonly KubeObject[], isList = true): string {
  let text = ''
  printObjects((part) => (text += part), formatOf(output) as ObjectFormat, {
    objects,
    isList,
    nameOf: ({ metadata }) => `pod/${metadata.name}`,
  })
  return text
}

const hostile = [
  object('a', {
    labels: { 'say "hi"': 'a:b' },
    annotations: { note: '🦊: "x"\n- y\t#z', yes: 'no', n: '1e3' },
  }),
  object('b', { annotations: { note: "it's, {fine}" } }),
]

test('hostile texts stay readable in every format', () => {
  const list = { apiVersion: 'v1', items: hostile, kind: 'List', metadata: { resourceVersion: '' } }
  assert.deepEqual(JSON.parse(printed('json', hostile)), list)
  for (const version of ['1.1', '1.2'] as const)
    assert.deepEqual(parse(printed('yaml', hostile), { version }), list, version)
  assert.equal(printed('name', hostile), 'pod/a\npod/b\n')
  assert.equal(
    printed('jsonpath={.items[*].metadata.annotations.note}', hostile),
    `🦊: "x"\n- y\t#z it's, {fine}`,
  )
  assert.deepEqual(
    printed("custom-columns=NAME:.metadata.name,NOTE:.metadata.annotations['note'],NONE:.x", hostile).split(
      '\n',
    ),
    [
      'NAME   NOTE              NONE',
      'a      🦊: "x"\\n- y\\t#z   <none>',
      "b      it's, {fine}      <none>",
      '',
    ],
  )
  assert.deepEqual(JSON.parse(printed('json', hostile.slice(0, 1), false)), hostile[0])
  assert.equal(JSON.parse(printed('json', [])).kind, 'List')
})

test('tables have one object a line, wide columns only when asked for, and keep their widths', () => {
  const columns = [
    { title: 'NAME', value: (row: string) => row },
    { title: 'MORE', value: () => 'x', isWide: true as const },
    { title: 'AGE', value: () => '1m' },
  ]
  let text = ''
  const writer = new TableWriter((part) => (text += part))
  writer.write(tableLines(columns, ['a', 'a-long-name\u001b[31m']))
  writer.write(tableLines(columns, ['b'], { noHeaders: true }))
  assert.deepEqual(text.split('\n'), [
    'NAME                  AGE',
    'a                     1m',
    'a-long-name\\x1b[31m   1m',
    'b                     1m',
    '',
  ])
  assert.deepEqual(tableLines(columns, ['a'], { isWide: true })[0], ['NAME', 'MORE', 'AGE'])
})

test('--sort-by compares amounts as amounts, and puts what has no value first', () => {
  const items = [{ v: '10' }, { v: '2' }, {}, { v: '1500m' }, { v: '1Gi' }]
  const sorted = sortedBy('{.metadata.annotations.v}', items, (annotations) => object('x', { annotations }))
  assert.deepEqual(sorted, [{}, { v: '1500m' }, { v: '2' }, { v: '10' }, { v: '1Gi' }])
  const names = sortedBy('.metadata.name', ['n10', 'n9', 'm'], (name) => object(name))
  assert.deepEqual(names, ['m', 'n9', 'n10'])
  assert.throws(() => sortedBy('{.a', items, () => object('x')), /--sort-by/)
})

test('EXP-29 colours need a terminal without NO_COLOR, or the wish for them', () => {
  const bare = (isTerminal: boolean, env: Record<string, string>, choice?: 'auto' | 'always' | 'never') =>
    paintFor({ env, isTerminal }, choice)('red', 'x') === 'x'
  assert.equal(bare(true, {}), false)
  assert.equal(bare(true, { NO_COLOR: '1' }), true)
  assert.equal(bare(false, {}), true)
  assert.equal(bare(true, {}, 'never'), true)
  assert.equal(bare(false, { NO_COLOR: '1' }, 'always'), false)
})
