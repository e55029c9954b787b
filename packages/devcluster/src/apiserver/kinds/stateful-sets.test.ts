import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TestServer } from '../api-server.test-support.ts'

const path = '/apis/apps/v1/namespaces/default/statefulsets'

function aStatefulSet(name: string, mounts: readonly string[], more: object = {}) {
  return {
    apiVersion: 'apps/v1',
    kind: 'StatefulSet',
    metadata: { name },
    spec: {
      serviceName: name,
      selector: { matchLabels: { app: name } },
      template: {
        metadata: { labels: { app: name } },
        spec: {
          containers: [
            {
              name: 'main',
              image: 'db:1',
              volumeMounts: mounts.map((mount) => ({ name: mount, mountPath: `/${mount}` })),
            },
          ],
        },
      },
      volumeClaimTemplates: [
        {
          metadata: { name: 'data' },
          spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
        },
      ],
      ...more,
    },
  }
}

test('RPT-52 a mounted claim template is accepted when created, applied and tried', async () => {
  const api = new TestServer()
  const tried = await api.call('POST', `${path}?dryRun=All`, aStatefulSet('tried', ['data']))
  assert.equal(tried.status, 201)
  assert.equal((await api.call('POST', path, aStatefulSet('created', ['data']))).status, 201)
  const apply = { contentType: 'application/apply-patch+yaml' }
  const applied = aStatefulSet('applied', ['data'])
  const query = '?fieldManager=test'
  assert.equal((await api.call('PATCH', `${path}/applied${query}&dryRun=All`, applied, apply)).status, 201)
  assert.equal((await api.call('PATCH', `${path}/applied${query}`, applied, apply)).status, 201)
  const again = aStatefulSet('applied', ['data'], { replicas: 2 })
  assert.equal((await api.call('PATCH', `${path}/applied${query}`, again, apply)).body.spec.replicas, 2)
})

test('RPT-52 a mount that nothing supplies is refused, beside claim templates as without', async () => {
  const api = new TestServer()
  const refused = await api.call('POST', path, aStatefulSet('db', ['data', 'cache']))
  assert.equal(refused.status, 422)
  assert.equal(
    refused.body.message,
    'StatefulSet.apps "db" is invalid: spec.template.spec.containers[0].volumeMounts[1].name: Not found: "cache"',
  )
})

test("RPT-52 a claim template takes the place of a volume of its name; host names are the set's", async () => {
  const api = new TestServer()
  const set = aStatefulSet('db', ['data'])
  const volumes = [{ name: 'data', emptyDir: {} }]
  const spec = { ...set.spec.template.spec, volumes, hostname: 'Not_A_Name', subdomain: 'Nor_This' }
  const template = { ...set.spec.template, spec }
  const { status } = await api.call('POST', path, { ...set, spec: { ...set.spec, template } })
  assert.equal(status, 201)
})

test('RPT-52 a claim template that could never be claimed and a policy nobody knows are refused', async () => {
  const api = new TestServer()
  const template = { metadata: { name: 'data' }, spec: { resources: { requests: { storage: '1Gi' } } } }
  const set = aStatefulSet('db', ['data'], {
    volumeClaimTemplates: [template],
    persistentVolumeClaimRetentionPolicy: { whenDeleted: 'Keep', whenScaled: 'Delete' },
  })
  const { body } = await api.call('POST', path, set)
  assert.deepEqual(
    body.details.causes.map((cause: { field: string }) => cause.field),
    [
      'spec.persistentVolumeClaimRetentionPolicy.whenDeleted',
      'spec.volumeClaimTemplates[0].spec.accessModes',
    ],
  )
})
