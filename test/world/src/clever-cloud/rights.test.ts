/** What the operator asks the API server about Clever Cloud's kinds, checked against the rights that the chart grants. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { cleverNodeClassKind, nodeGroupKind } from '@tenon/provider-clever-cloud'
import { cleverCloud } from '@tenon/provider-clever-cloud/module'
import type { HttpRequest, Transport } from '@tenon/runtime'
import { CleverStage, minutes } from './stage.test-support.ts'

const verbs: Readonly<Record<string, string>> = {
  POST: 'create',
  PATCH: 'patch',
  PUT: 'update',
  DELETE: 'delete',
}

/** Such as `create api.clever-cloud.com/nodegroups`; undefined for a request about another kind. */
function rightFor({ method, path }: HttpRequest): string | undefined {
  const { pathname, searchParams } = new URL(path, 'http://api')
  const [, apis, group = '', , resource = '', name, subresource] = pathname.split('/')
  if (apis !== 'apis' || ![nodeGroupKind.group, cleverNodeClassKind.group].includes(group)) return undefined
  const reading = name !== undefined ? 'get' : searchParams.has('watch') ? 'watch' : 'list'
  const verb = method === 'GET' ? reading : (verbs[method] ?? method)
  return `${verb} ${group}/${[resource, subresource].filter((part) => part !== undefined).join('/')}`
}

async function grantedRights(): Promise<readonly string[]> {
  const { rules = [] } = (await cleverCloud.chart?.()) ?? {}
  // Every provider may read its node classes.
  const { group, plural } = cleverNodeClassKind
  const reading = { apiGroups: [group], resources: [plural], verbs: ['get', 'list', 'watch'] }
  return [...rules, reading].flatMap(({ apiGroups, resources, verbs: granted }) =>
    apiGroups.flatMap((each) =>
      resources.flatMap((name) => granted.map((verb) => `${verb} ${each}/${name}`)),
    ),
  )
}

test('the chart grants the rights that are used on NodeGroups and node classes, and no other', async (t) => {
  const used = new Set<string>()
  const apiPath = (inner: Transport): Transport => ({
    send: (request, signal) => {
      const right = rightFor(request)
      if (right !== undefined) used.add(right)
      return inner.send(request, signal)
    },
  })
  const stage = await CleverStage.open(t, { apiPath })
  stage.deploy('web', 3, { cpu: '1', memory: '1500Mi' })
  assert.ok(await stage.until(() => stage.allRun(3), 5 * minutes))
  const server = stage.world.cluster.server.local
  server.patch(cleverNodeClassKind, undefined, 'default', { spec: { labels: { team: 'data' } } })
  await stage.pass(5 * minutes)
  stage.world.scale('web', 0)
  server.delete(cleverNodeClassKind, undefined, 'default')
  const isOver = () => stage.groups().length === 0 && server.list(cleverNodeClassKind).length === 0
  assert.ok(await stage.until(isOver, 15 * minutes))
  const granted = await grantedRights()
  assert.deepEqual(
    [...used].filter((right) => !granted.includes(right)),
    [],
    'not granted',
  )
  // Servers that stream the first state of a watch are not asked for lists.
  for (const right of used) used.add(right.replace(/^watch/, 'list'))
  assert.deepEqual(
    granted.filter((right) => !used.has(right)),
    ['get karpenter.clever-cloud.com/clevernodeclasses'],
    'never used; reading one by name is left to whoever asks',
  )
})
