/**
 * The guides docs/exoscale, docs/clever-cloud and docs/cluster-api, played: every block of commands is run against an embedded
 * cluster and the simulated cloud, in the order of the pages, or says why it is not.
 */
import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { symlink } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { describe, test, type TestContext } from 'node:test'
import { builtInProviders } from './providers.ts'
import {
  addTenon,
  type Block,
  blocksOf as blocksOfPage,
  hasKubectl,
  runCommands,
} from './testing/pages.test-support.ts'
import {
  controllerSettings,
  eventually,
  startTenon,
  temporaryDirectory,
} from './testing/tenon-process.test-support.ts'

const root = resolve(import.meta.dirname, '../../..')

interface Guide {
  /** The cloud that it is about. */
  readonly provider: string
  /** Pages with commands that need one another come in this order; then the others. */
  readonly first: readonly string[]
}

const guides: readonly Guide[] = [
  {
    provider: 'exoscale',
    first: ['install.md', 'README.md', 'cost.md', 'upgrade.md', 'migrate-from-go.md'],
  },
  {
    provider: 'clever-cloud',
    first: ['install.md', 'README.md', 'quota-and-cost.md', 'migrate-from-go.md'],
  },
  {
    provider: 'cluster-api',
    first: ['install.md', 'README.md', 'prices.md', 'hub-and-spoke.md', 'migrate.md'],
  },
]

const folderOf = ({ provider }: Guide): string => join(root, 'docs', provider)

function pagesOf(guide: Guide): readonly string[] {
  const all = readdirSync(folderOf(guide)).filter((name) => name.endsWith('.md'))
  return [...new Set([...guide.first, ...all])]
}

const blocksOf = (guide: Guide): readonly Block[] =>
  pagesOf(guide)
    .flatMap((page) => blocksOfPage(`docs/${guide.provider}/${page}`))
    .filter(({ language }) => language === 'sh')

for (const guide of guides) {
  const blocks = blocksOf(guide)

  test(`every block of commands of the guide of ${guide.provider} is run, or says why it is not`, () => {
    assert.ok(blocks.filter(({ marker }) => marker === 'run').length >= 12)
    for (const { place, marker } of blocks)
      assert.match(
        marker,
        /^(run|run in the background|not run: .{8,})$/,
        `${place}: no marker above the block`,
      )
  })

  test(`files, links and chart values that the guide of ${guide.provider} names exist`, () => {
    const values = readFileSync(join(root, 'charts/tenon/values.yaml'), 'utf8')
    for (const { place, text: commands } of blocks) {
      for (const [path] of commands.matchAll(/\b(?:examples|charts)\/[\w./-]+/g))
        assert.ok(existsSync(join(root, path)), `${place} names ${path}`)
      for (const [, name = ''] of commands.matchAll(new RegExp(`--set ${guide.provider}\\.(\\w+)=`, 'g')))
        assert.match(values, new RegExp(`^  ${name}:`, 'm'), `${place} sets ${name}`)
    }
    for (const page of pagesOf(guide))
      for (const [, target = ''] of readFileSync(join(folderOf(guide), page), 'utf8').matchAll(
        /\]\(([^)#:]+)(?:#[^)]*)?\)/g,
      ))
        assert.ok(existsSync(join(folderOf(guide), target)), `${page} links to ${target}`)
  })
}

describe('the guides', {
  skip: hasKubectl ? false : 'kubectl is not on the PATH: no command of the guides is run',
}, () => {
  for (const guide of guides) {
    const { simulator } = builtInProviders.find(({ name }) => name === guide.provider) ?? {}
    const skip = simulator === undefined && `there is no simulated ${guide.provider}`
    test(`every command works on ${guide.provider}, from an empty cluster to nodes and back`, { skip }, (t) =>
      play(t, guide),
    )
  }
})

async function play(t: TestContext, guide: Guide): Promise<void> {
  const cwd = await temporaryDirectory(t)
  await addTenon(cwd)
  for (const name of ['examples', 'charts', 'docs']) await symlink(join(root, name), join(cwd, name))
  const ports = ['--port', '0', '--api-port', '0']
  const cluster = startTenon(t, cwd, [
    'devcluster',
    '--provider',
    guide.provider,
    ...ports,
    '--boot-delay',
    '500ms',
  ])
  await eventually(
    () => /^for the controller .*\n/m.test(cluster.out()) || undefined,
    () => `tenon devcluster tells where it is: ${cluster.out()}${cluster.err()}`,
  )
  const settings = await controllerSettings(cwd)
  for (const { place, marker, text: commands } of blocksOf(guide)) {
    if (marker === 'run in the background') {
      const [tenon, ...args] = commands.trim().split(' ')
      assert.equal(tenon, 'tenon', place)
      startTenon(t, cwd, [...args, '--metrics-port', '0', '--health-probe-port', '0'], settings)
    }
    if (marker !== 'run') continue
    const { code, out, err } = await runCommands(cwd, commands)
    assert.equal(code, 0, `${place}\n${commands}\n${out}${err}`)
  }
}
