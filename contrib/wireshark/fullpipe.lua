-- Fields from the comments that `fullpipe analyze --annotate` writes into a capture.
--
-- Each comment ends with names: "[finding=window_shut owner=client_application]", or "limit=" where
-- data was on its way. This makes them fields to filter by, to colour by and to show as columns:
--
--   fullpipe.connection  the number of the connection in the answer of fullpipe
--   fullpipe.finding     what was waited for until this packet
--   fullpipe.limit       what holds the data from this packet on
--   fullpipe.owner       who had the time
--   fullpipe.text        the sentence

local fullpipe = Proto("fullpipe", "fullpipe: what held the transfer")
local connection = ProtoField.uint32("fullpipe.connection", "Connection")
local finding = ProtoField.string("fullpipe.finding", "Finding")
local limit = ProtoField.string("fullpipe.limit", "Limit")
local owner = ProtoField.string("fullpipe.owner", "Owner")
local text = ProtoField.string("fullpipe.text", "Says")
fullpipe.fields = { connection, finding, limit, owner, text }

local comments = Field.new("frame.comment")

function fullpipe.dissector(buffer, pinfo, tree)
    local shown
    for _, comment in ipairs({ comments() }) do
        local said = tostring(comment.value)
        local number, sentence, kind, name, who =
            said:match("^fullpipe #(%d+): (.*) %[(%l+)=([%l%d_]+) owner=([%l_]+)%]$")
        if number then
            shown = shown or tree:add(fullpipe, buffer(0, 0))
            shown:add(connection, tonumber(number)):set_generated()
            shown:add(text, sentence):set_generated()
            if kind == "limit" then
                shown:add(limit, name):set_generated()
            else
                shown:add(finding, name):set_generated()
            end
            shown:add(owner, who):set_generated()
        end
    end
end

register_postdissector(fullpipe)
