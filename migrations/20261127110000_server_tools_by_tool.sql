-- The servers of a tool are read for each row of a list of tools, and when a tool is deleted. The primary key finds them by server alone.
-- New index only: legal while the previous release runs.
create index server_tools_tool on server_tools (tenant_id, tool_id);
