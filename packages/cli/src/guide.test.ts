/**
 * The guide docs/exoscale, played: every block of commands is run against an embedded cluster and a
 * simulated Exoscale, in the order of the pages, or says why it is not.
 */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { chmod, mkdir, symlink, writeFile } from 'node:fs/promises'
import { delimiter, join, resolve } from 'node:path'
import { describe, test } from 'node:test'
import {
  controllerSettings,
  eventually,
  startTenon,
  temporaryDirectory,
} from './tenon-process.test-support.ts'

const root = resolve(import.meta.dirname, '../../..')
const guide = join(root, 'docs/exoscale')
/** Pages with commands that need one another come in this order; then the others. */
const first = ['install.md', 'README.md', 'cost.md', 'upgrade.md', 'migrate-from-go.md']
const pages = [...new Set([...first, ...readdirSync(guide).filter((name) => name.endsWith('.md'))])]

interface Block {
  readonly place: string
  /** What stands in the comment above it. */
  readonly marker: string
  readonly commands: string
}

function blocksOf(page: string): readonly Block[] {
  const lines = readFileSync(join(guide, page), 'utf8').split('\n')
  return lines.flatMap((line, index): readonly Block[] => {
    if (line !== '```sh') return []
    const end = lines.indexOf('```', index)
    const marker = /^<!-- (.*) -->$/.exec(lines[index - 1] ?? '')?.[1] ?? ''
    return [{ place: `${page}:${index + 1}`, marker, commands: lines.slice(index + 1, end).join('\n') }]
  })
}

const blocks = pages.flatMap(blocksOf)

test('every block of commands of the guide is run, or says why it is not', () => {
  assert.ok(blocks.filter(({ marker }) => marker === 'run').length >= 12)
  for (const { place, marker } of blocks)
    assert.match(
      marker,
      /^(run|run in the background|not run: .{8,})$/,
      `${place}: no marker above the block`,
    )
})

test('files, links and chart values that the guide names exist', () => {
  const values = join(root, 'charts/tenon/values.yaml')
  for (const { place, commands } of blocks) {
    for (const [path] of commands.matchAll(/\b(?:examples|charts)\/[\w./-]+/g))
      assert.ok(existsSync(join(root, path)), `${place} names ${path}`)
    if (!existsSync(values)) continue
    for (const [, name = ''] of commands.matchAll(/--set exoscale\.(\w+)=/g))
      assert.match(
        readFileSync(values, 'utf8'),
        new RegExp(`^  ${name}:`, 'm'),
        `${place} sets exoscale.${name}`,
      )
  }
  for (const page of pages)
    for (const [, target = ''] of readFileSync(join(guide, page), 'utf8').matchAll(/\]\(([^)#:]+)\)/g))
      assert.ok(existsSync(join(guide, target)), `${page} links to ${target}`)
})

interface Outcome {
  readonly code: number
  readonly text: string
}

function shell(cwd: string, commands: string): Promise<Outcome> {
  const env = {
    PATH: `${join(cwd, 'bin')}${delimiter}${process.env['PATH']}`,
    HOME: cwd,
    KUBECONFIG: '.tenon/kubeconfig',
  }
  const options = { cwd, env, maxBuffer: 64 * 1024 * 1024 }
  return new Promise((done) => {
    const child = execFile('bash', ['-euo', 'pipefail', '-c', commands], options, (_error, out, err) => {
      done({ code: child.exitCode ?? 1, text: out + err })
    })
  })
}

const hasKubectl = (process.env['PATH'] ?? '')
  .split(delimiter)
  .some((path) => existsSync(join(path, 'kubectl')))

describe('the guide', {
  skip: hasKubectl ? false : 'kubectl is not on the PATH: no command of the guide is run',
}, () => {
  test('every command works, from a cluster without anything to nodes and back', async (t) => {
    const cwd = await temporaryDirectory(t)
    await mkdir(join(cwd, 'bin'))
    const main = join(import.meta.dirname, 'main.ts')
    await writeFile(join(cwd, 'bin/tenon'), `#!/bin/sh\nexec '${process.execPath}' '${main}' "$@"\n`)
    await chmod(join(cwd, 'bin/tenon'), 0o755)
    for (const name of ['examples', 'charts', 'docs']) await symlink(join(root, name), join(cwd, name))
    const ports = ['--port', '0', '--api-port', '0']
    const cluster = startTenon(t, cwd, ['devcluster', ...ports, '--boot-delay', '500ms'])
    await eventually(
      60_000,
      () => /^for the controller .*\n/m.test(cluster.out()) || undefined,
      () => `tenon devcluster tells where it is: ${cluster.out()}${cluster.err()}`,
    )
    const settings = await controllerSettings(cwd)
    for (const { place, marker, commands } of blocks) {
      if (marker === 'run in the background') {
        const [tenon, ...args] = commands.trim().split(' ')
        assert.equal(tenon, 'tenon', place)
        startTenon(t, cwd, [...args, '--metrics-port', '0', '--health-probe-port', '0'], settings)
      }
      if (marker !== 'run') continue
      const { code, text } = await shell(cwd, commands)
      assert.equal(code, 0, `${place}\n${commands}\n${text}`)
    }
  })
})
