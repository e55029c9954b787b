/** The schema of each form for programs, by kind (ask.md 1). */
import { askSchemas, type JsonSchema } from '@tenon/ask/schema'
import { costSchema, replaySchema, spentSchema } from './costs.ts'
import { preflightSchema, testSchema, validationSchema } from './reports.ts'
import { simulationSchema } from './simulation.ts'
import { viewSchema } from './view.ts'

/** In the order of names. */
export const schemas: ReadonlyMap<string, JsonSchema> = new Map(
  Object.entries<JsonSchema>({
    ...askSchemas,
    ClusterView: viewSchema,
    CostReport: costSchema,
    PreflightReport: preflightSchema,
    ReplayReport: replaySchema,
    Simulation: simulationSchema,
    SpentReport: spentSchema,
    TestReport: testSchema,
    ValidationReport: validationSchema,
  }).toSorted(([a], [b]) => (a < b ? -1 : 1)),
)
