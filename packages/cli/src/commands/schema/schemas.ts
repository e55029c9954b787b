/** The JSON Schemas of all printed objects, by kind (ask.md 1). */
import { askSchemas, type JsonSchema } from '@tenon/ask/schema'
import { costSchema, spentSchema } from '../cost/schema.ts'
import { migrationPlanSchema, migrationProgressSchema } from '../migrate/schema.ts'
import { preflightSchema } from '../preflight/schema.ts'
import { replaySchema } from '../replay/schema.ts'
import { reportSchema } from '../report/schema.ts'
import { shadowSchema } from '../report/shadow-schema.ts'
import { simulationSchema } from '../simulate/schema.ts'
import { testSchema } from '../test/schema.ts'
import { validationSchema } from '../validate/schema.ts'
import { viewSchema } from '../view/schema.ts'

/** Sorted by name. */
export const schemas: ReadonlyMap<string, JsonSchema> = new Map(
  Object.entries<JsonSchema>({
    ...askSchemas,
    ClusterReport: reportSchema,
    ClusterView: viewSchema,
    CostReport: costSchema,
    MigrationPlan: migrationPlanSchema,
    MigrationProgress: migrationProgressSchema,
    PreflightReport: preflightSchema,
    ReplayReport: replaySchema,
    ShadowReport: shadowSchema,
    Simulation: simulationSchema,
    SpentReport: spentSchema,
    TestReport: testSchema,
    ValidationReport: validationSchema,
  }).toSorted(([a], [b]) => (a < b ? -1 : 1)),
)
