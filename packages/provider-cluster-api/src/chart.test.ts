import assert from 'node:assert/strict'
import { test } from 'node:test'
import { chart } from './chart.ts'
import { clusterApi } from './module.ts'

test('CAP-76 values of the chart set variables that options of the provider have', () => {
  const variables = chart.values.flatMap(({ to }) =>
    to.kind === 'secretVariables' ? to.variables : [to.variable],
  )
  const known = new Set(clusterApi.options.map(({ variable }) => variable))
  for (const variable of variables) assert.ok(known.has(variable), variable)
  assert.ok(variables.includes('CLUSTER_API_KUBECONFIG'))
})

test('no right lets it make or replace objects of Cluster API, or look at Secrets', () => {
  for (const { resources, verbs } of chart.rules) {
    assert.ok(!verbs.some((verb) => ['create', 'update', 'deletecollection', '*'].includes(verb)))
    assert.ok(!resources.includes('secrets'))
    if (verbs.includes('delete')) assert.deepEqual(resources, ['machines'])
  }
})
