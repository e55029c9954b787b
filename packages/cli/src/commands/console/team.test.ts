import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { runCommand } from '../../testing/command.test-support.ts'
import { serveApi } from '../../testing/served-api.test-support.ts'
import { snapshot } from '../../testing/snapshot.test-support.ts'
import { aTeam, playAttacks, playTeam } from './team-scenario.test-support.ts'

interface Config {
  readonly clusters: readonly { readonly cluster: { readonly server: string } }[]
  readonly users: readonly { readonly user: { readonly token: string } }[]
}

async function anApi(t: TestContext) {
  const folder = await mkdtemp(join(tmpdir(), 'tenon-team-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  const api = await serveApi(t, folder, snapshot.objects)
  const { clusters, users } = JSON.parse(await readFile(api.kubeconfig, 'utf8')) as Config
  const server = clusters[0]?.cluster.server ?? ''
  const request = async (token: string, method: string, path: string, body?: object) => {
    const answer = await fetch(server + path, {
      method,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    return { status: answer.status, body: await answer.json() }
  }
  const admin = async (method: string, path: string, body?: object) =>
    await request(users[0]?.user.token ?? '', method, path, body)
  const canI = async (token: string, verb: string, resource: string) => {
    const { body } = await request(token, 'POST', '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews', {
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SelfSubjectAccessReview',
      spec: { resourceAttributes: { verb, resource } },
    })
    return (body as { readonly status: { readonly allowed: boolean } }).status.allowed
  }
  return { api, admin, canI, cluster: { kubeconfig: api.kubeconfig, admin } }
}

test('PGE-10 each user sees and can do what kubectl auth can-i says, the account of the console nothing', async (t) => {
  const { canI, cluster } = await anApi(t)
  const team = await aTeam(t, cluster)
  await playTeam(team, canI)
  await playAttacks(team)
})

test('PGE-10 a user who loses a right loses what was read with it', async (t) => {
  const { admin, api, cluster } = await anApi(t)
  const { ask, tokens, url } = await aTeam(t, cluster)
  const found = async () => (await ask(`${url}/api/search?text=strange`, { token: tokens.dev })).text
  assert.match(await found(), /"strange"/)
  await admin('DELETE', '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/tenon-team-dev')
  // Watches go on with the rights of their beginning, here as with kubectl, until the server ends them.
  const restore = await api.cut()
  await restore()
  while ((await found()).includes('"strange"')) await new Promise((resolve) => setTimeout(resolve, 100))
})

test('PGE-10 without authentication the page listens on loopback alone, and what is the same for all is not served to a team', async () => {
  const refusals: readonly (readonly [args: readonly string[], says: RegExp])[] = [
    [
      ['--address', '0.0.0.0'],
      /^error: --address 0\.0\.0\.0: without --serve .* listens on 127\.0\.0\.1 alone/,
    ],
    [['--address', '::'], /without --serve/],
    [['--address', '10.0.0.1', '--url', 'https://a.example'], /without --serve/],
    [['--url', 'https://a.example'], /add --serve/],
    [['--serve', '--address', '0.0.0.0'], /needs --url/],
    [['--serve', '--snapshot', 'x'], /--snapshot with --serve would show everybody the same/],
    [['--serve', '--trace', 'x'], /--trace with --serve/],
    [['--serve', '--controller', 'http://127.0.0.1:8082'], /--controller with --serve/],
    [['--serve', '--open'], /users sign in/],
    [['--address', 'localhost'], /Use an IP address/],
    [['--serve', '--url', 'https://a.example/page'], /Use a URL without a path/],
    [['--serve', '--url', 'javascript:alert(1)'], /Use a URL without a path/],
    [['--serve', '--token-header', 'a b'], /Use a name such as/],
  ]
  for (const [args, says] of refusals) {
    const { code, err } = await runCommand(['console', ...args])
    assert.notEqual(code, 0, args.join(' '))
    assert.match(err, says)
  }
})
