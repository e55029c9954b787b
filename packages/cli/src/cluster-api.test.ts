/** Documents of Cluster API say what its module does. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { test } from 'node:test'
import { clusterApi } from '@tenon/provider-cluster-api/module'
import { parseAllDocuments } from 'yaml'

const documents = resolve(import.meta.dirname, '../../../docs/cluster-api')

interface Role {
  readonly kind: string
  readonly rules?: readonly { readonly apiGroups: readonly string[] }[]
}

test('CAP-73 the manifest for a management cluster grants what the chart grants there, and no more', async () => {
  const chart = await clusterApi.chart?.()
  const own = new Set(clusterApi.nodeClasses.map(({ group }) => group))
  const ofHub = chart?.rules.filter(({ apiGroups }) => !apiGroups.some((group) => own.has(group))) ?? []
  const manifest = readFileSync(join(documents, 'hub-rbac.yaml'), 'utf8')
  const granted = parseAllDocuments(manifest).flatMap((document) => (document.toJS() as Role).rules ?? [])
  assert.ok(granted.length > 0)
  assert.deepEqual(granted, ofHub)
})

test('the page of settings names every variable that the chart sets', async () => {
  const chart = await clusterApi.chart?.()
  const pages = ['install.md', 'hub-and-spoke.md'].map((name) => readFileSync(join(documents, name), 'utf8'))
  for (const { name, to } of chart?.values ?? []) {
    assert.ok(pages.join('\n').includes(`\`cluster-api.${name}\``), name)
    for (const variable of to.kind === 'secretVariables' ? to.variables : [to.variable])
      assert.ok(pages.join('\n').includes(`\`${variable}\``), variable)
  }
})
