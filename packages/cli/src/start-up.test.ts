/** What a start loads: all of it takes CPU time and memory in every process. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

const main = fileURLToPath(new URL('main.ts', import.meta.url))
/** Prints the URL of every module that is asked for. */
const telltale = `data:text/javascript,${encodeURIComponent(`
  import { registerHooks } from 'node:module'
  registerHooks({
    resolve(specifier, context, next) {
      const resolved = next(specifier, context)
      process.stderr.write(resolved.url + '\\n')
      return resolved
    },
  })
`)}`

function loadedBy(...args: readonly string[]): readonly string[] {
  const { stderr } = spawnSync(process.execPath, ['--import', telltale, main, ...args], { encoding: 'utf8' })
  return stderr.split('\n').filter((line) => line.includes('://'))
}

test('the controller starts without the embedded cluster, other providers and generated clients', () => {
  const loaded = loadedBy(
    'controller',
    '--provider',
    'kwok',
    '--kubeconfig',
    '/nowhere',
    '--disable-leader-election',
  )
  assert.ok(loaded.some((url) => url.endsWith('/commands/controller/run.ts')))
  // What a module tells of its cloud is for help and for options that are of another provider.
  const superfluous =
    /\/devcluster\/src\/|\/provider-(exoscale|clever-cloud|cluster-api)\/src\/(?!(module|names|node-class|nodeclass\/types)\.ts)|\/client-node\/dist\/(gen|index)/
  assert.deepEqual(
    loaded.filter((url) => superfluous.test(url)),
    [],
  )
})

test('the version is told without loading what other commands are made of', () => {
  const files = loadedBy('version').flatMap((url) => /\/packages\/([^/]+\/src\/.*)/.exec(url)?.[1] ?? [])
  const light = /^(api|cli)\/|^provider-[a-z-]+\/src\/(module|names|node-?class(\/types)?)\.ts$/
  assert.deepEqual(
    files.filter((file) => !light.test(file)),
    [],
  )
})
