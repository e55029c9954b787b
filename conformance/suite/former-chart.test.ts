/** A chart of another project that a cloud takes over, as helm renders it. */
import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { loadYaml, type V1ConfigMap, type V1Deployment } from '@kubernetes/client-node'
import type { ProviderModule } from '@tenon/provider'
import { kwok } from '@tenon/provider-kwok/module'
import { chartFiles } from '../../build/chart-files.ts'
import { Helm, type Values } from '../src/chart/helm.ts'

const toy: ProviderModule = {
  ...kwok,
  name: 'toy',
  title: 'Toy Cloud',
  crds: () => Promise.resolve([]),
  chart: () =>
    Promise.resolve({
      values: [
        {
          name: 'zone',
          meaning: 'Zone of the cluster; needed.',
          initial: '',
          needed: 'such as toy-1',
          to: { kind: 'variable', variable: 'TOY_ZONE' },
        },
        {
          name: 'sizes',
          meaning: 'Sizes of toys.',
          initial: [],
          schema: { type: 'array', items: { type: 'object' } },
          to: { kind: 'file', variable: 'TOY_SIZES', file: 'sizes.yaml' },
        },
      ],
      rules: [],
      roles: [],
      preferredNodes: { 'toy.example.com/role': ['shelf'] },
      takesOver: {
        name: 'toybox',
        images: 'toy-scaler',
        renamed: { 'settings.place': 'toy.zone', 'settings.sizes': 'toy.sizes' },
        ignored: { 'settings.speed': 'toys are as fast as they are.' },
      },
    }),
}

const sizes = [{ name: 'small', memory: 3_715_344 }, { name: 'large' }]
const settings = { place: 'toy-2', sizes, speed: 9 }

describe('a chart that a cloud takes over', () => {
  const folder = mkdtempSync(join(tmpdir(), 'tenon-chart-'))
  const toybox = join(folder, 'charts/toybox')
  let helm: Helm

  before(async () => {
    helm = await Helm.open(folder)
    for (const [path, text] of await chartFiles([toy])) {
      if (!path.startsWith('charts/toybox')) continue
      mkdirSync(dirname(join(folder, path)), { recursive: true })
      writeFileSync(join(folder, path), text)
    }
  })

  after(() => rmSync(folder, { recursive: true, force: true }))

  const deploymentOf = async (values: Values) => {
    const rendered = await helm.objects<V1Deployment>(toybox, values)
    const found = rendered.find(({ kind }) => kind === 'Deployment')
    const { containers = [], affinity } = found?.spec?.template.spec ?? {}
    const [container] = containers
    assert.ok(container)
    return { affinity, container }
  }

  test('is there under its name, beside one with its definitions', async () => {
    await helm.must(['lint', '--strict', toybox, '--set', 'toy.zone=toy-1'])
    await helm.must(['lint', '--strict', `${toybox}-crd`])
    for (const each of [toybox, `${toybox}-crd`]) {
      const { name } = loadYaml<{ name: string }>(readFileSync(join(each, 'Chart.yaml'), 'utf8'))
      assert.equal(join(folder, 'charts', name), each)
    }
    const { container, affinity } = await deploymentOf({ toy: { zone: 'toy-1' } })
    assert.deepEqual(container.args, ['controller', '--provider=toy'])
    const [preferred] = affinity?.nodeAffinity?.preferredDuringSchedulingIgnoredDuringExecution ?? []
    assert.deepEqual(preferred?.preference.matchExpressions, [
      { key: 'toy.example.com/role', operator: 'In', values: ['shelf'] },
    ])
  })

  test('takes its values, also as the content of a file, and holds them to the schema of the values here', async () => {
    const { container } = await deploymentOf({ settings })
    assert.deepEqual(
      container.env?.filter(({ name }) => name.startsWith('TOY_')),
      [
        { name: 'TOY_ZONE', value: 'toy-2' },
        { name: 'TOY_SIZES', value: '/etc/tenon/sizes.yaml' },
      ],
    )
    const maps = await helm.objects<V1ConfigMap>(toybox, { settings })
    const files = maps.find(({ kind }) => kind === 'ConfigMap')
    assert.deepEqual(loadYaml(files?.data?.['sizes.yaml'] ?? ''), sizes)
    const { err } = await helm.run(['template', 'a', toybox], { settings: { place: 7 } })
    assert.match(err, /settings\/place/)
  })

  test('tells of values without effect, its own image among them', async () => {
    const image = { repository: 'registry.example.com/toy-scaler', tag: 'v1' }
    const notes = await helm.must(['install', 'a', toybox, '--dry-run=client'], { settings, image })
    assert.match(notes, /^settings\.speed has no effect: toys are as fast as they are\.$/m)
    assert.match(notes, /^image has no effect: /m)
    assert.match((await deploymentOf({ settings, image })).container.image ?? '', /^tenon:v/)
    const other = { repository: 'registry.example.com/mine', tag: 'v1' }
    const { container } = await deploymentOf({ settings, image: other })
    assert.equal(container.image, 'registry.example.com/mine:v1')
  })
})
